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

// shortestToken is what a static token has at least, so that it is not guessed.
const shortestToken = 16

// Authenticator says whose a token is; nobody's when it is not ok. An error is
// that it could not be found out.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (user User, ok bool, err error)
}

// token of a file of static tokens.
type token struct {
	Token  string   `json:"token"`
	User   string   `json:"user"`
	Groups []string `json:"groups,omitempty"`
}

// Static tokens are the items of a YAML file: token, user, groups. A file that
// changed is read again.
type Static struct {
	path string

	mu     sync.Mutex
	read   time.Time
	tokens []token
}

// NewStatic reads a file of tokens.
func NewStatic(path string) (*Static, error) {
	s := &Static{path: path}
	return s, s.refresh()
}

func (s *Static) refresh() error {
	info, err := os.Stat(s.path)
	if err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if info.ModTime().Equal(s.read) {
		return nil
	}
	text, err := os.ReadFile(s.path)
	if err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	var tokens []token
	if err := yaml.UnmarshalStrict(text, &tokens); err != nil {
		// The error quotes the file.
		return fmt.Errorf("tokens: %s is no YAML list of token, user, groups", s.path)
	}
	for i, t := range tokens {
		if len(t.Token) < shortestToken || t.User == "" {
			return fmt.Errorf("tokens: item %d of %s needs a user and a token of at least %d characters", i, s.path, shortestToken)
		}
	}
	s.read, s.tokens = info.ModTime(), tokens
	return nil
}

// Authenticate compares with all tokens, each in constant time. A file that
// cannot be read any more leaves what was read before.
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
