package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"os"
	"sync"
	"time"

	"sigs.k8s.io/yaml"
)

// minTokenLength is the minimum length of a static token in characters.
const minTokenLength = 16

// Authenticator returns the user of a token. ok is false if the token is not
// valid; an error means that the token could not be checked.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (user User, ok bool, err error)
}

// token is an item of TOKENS_FILE.
type token struct {
	Token  string   `json:"token"`
	User   string   `json:"user"`
	Groups []string `json:"groups,omitempty"`
}

// Static authenticates the tokens of TOKENS_FILE, a YAML list of token, user and
// groups. A changed file is read again.
type Static struct {
	path string

	mu      sync.Mutex
	modTime time.Time
	tokens  []token
}

// NewStatic reads a token file.
func NewStatic(path string) (*Static, error) {
	s := &Static{path: path}
	return s, s.refresh()
}

func (s *Static) refresh() error {
	info, err := os.Stat(s.path)
	if err != nil {
		return fmt.Errorf("read token file: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if info.ModTime().Equal(s.modTime) {
		return nil
	}
	text, err := os.ReadFile(s.path)
	if err != nil {
		return fmt.Errorf("read token file: %w", err)
	}
	var tokens []token
	if err := yaml.UnmarshalStrict(text, &tokens); err != nil {
		// The YAML error quotes the tokens.
		return fmt.Errorf("parse token file %s: not a YAML list of token, user, groups", s.path)
	}
	for i, t := range tokens {
		if len(t.Token) < minTokenLength || t.User == "" {
			return fmt.Errorf("parse token file %s: item %d must have a user and a token of at least %d characters", s.path, i, minTokenLength)
		}
	}
	s.modTime, s.tokens = info.ModTime(), tokens
	return nil
}

// Authenticate compares the token with all tokens in constant time. If the file
// cannot be read, the tokens read before remain valid.
func (s *Static) Authenticate(_ context.Context, given string) (User, bool, error) {
	err := s.refresh()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tokens) == 0 && err != nil {
		return User{}, false, err
	}
	sum := sha256.Sum256([]byte(given))
	var user User
	found := false
	for _, t := range s.tokens {
		other := sha256.Sum256([]byte(t.Token))
		if subtle.ConstantTimeCompare(sum[:], other[:]) == 1 {
			user, found = User{Name: t.User, Groups: t.Groups}, true
		}
	}
	return user, found, nil
}
