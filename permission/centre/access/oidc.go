package access

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/coreos/go-oidc/v3/oidc"
	"k8s.io/utils/clock"
)

// OIDCConfig configures a token issuer: a company's or another cluster's.
type OIDCConfig struct {
	// Issuer is the URL of the issuer.
	Issuer string `json:"issuer"`
	// AllowHTTP allows an issuer and its keys without TLS.
	AllowHTTP bool `json:"allowHTTP,omitempty"`
	// ClientID is the required audience.
	ClientID string `json:"clientID"`
	// UsernameClaim defaults to sub, GroupsClaim to groups.
	UsernameClaim string `json:"usernameClaim,omitempty"`
	GroupsClaim   string `json:"groupsClaim,omitempty"`
	// Prefix is prepended to user and group names to separate issuers. A token with a name that then begins with system: is
	// rejected.
	Prefix string `json:"prefix,omitempty"`
}

// validate names an invalid key.
func (c OIDCConfig) validate() error {
	issuer, err := url.Parse(c.Issuer)
	switch {
	case err != nil || issuer.Host == "" || issuer.User != nil || (issuer.Scheme != "http" && issuer.Scheme != "https"):
		return fmt.Errorf("issuer: %q is not a URL such as https://issuer.example.com", c.Issuer)
	case issuer.Scheme == "http" && !c.AllowHTTP:
		return fmt.Errorf("issuer: %q has no TLS, so its keys can be replaced on the network; use https, or set allowHTTP: true if the network is trusted", c.Issuer)
	case c.ClientID == "":
		return errors.New("clientID: required: the audience of the tokens")
	case strings.HasPrefix(c.Prefix, reservedPrefix):
		return fmt.Errorf("prefix: %q begins with %s, so each name of a token would be reserved", c.Prefix, reservedPrefix)
	}
	return nil
}

// OIDC authenticates tokens that an issuer signed. While the issuer is unreachable,
// only tokens that are signed with a known key are accepted.
type OIDC struct {
	config OIDCConfig
	http   *http.Client
	// requests records failed requests to the issuer.
	requests *issuerTransport
	// verifier is nil until the issuer was discovered.
	verifier atomic.Pointer[oidc.IDTokenVerifier]
}

// NewOIDC returns an authenticator that accepts no token before Discover succeeds.
func NewOIDC(c OIDCConfig, clock clock.PassiveClock) *OIDC {
	if c.UsernameClaim == "" {
		c.UsernameClaim = "sub"
	}
	if c.GroupsClaim == "" {
		c.GroupsClaim = "groups"
	}
	requests := newIssuerTransport(c.AllowHTTP, clock)
	return &OIDC{config: c, requests: requests, http: &http.Client{Transport: requests, Timeout: issuerTimeout}}
}

// Issuer returns the URL of the issuer.
func (o *OIDC) Issuer() string { return o.config.Issuer }

// Failure returns the error of the last failed request to the issuer; nil after a Discover
// that succeeded.
func (o *OIDC) Failure() error { return o.requests.failure() }

// Discover reads the issuer's discovery document, and checks that its keys can be
// read.
func (o *OIDC) Discover(ctx context.Context) error {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, o.http), o.config.Issuer)
	if err == nil {
		err = o.readKeys(ctx, provider)
	}
	if err != nil {
		err = fmt.Errorf("discover OIDC issuer %s: %w", o.config.Issuer, err)
	} else {
		o.verifier.Store(provider.Verifier(&oidc.Config{ClientID: o.config.ClientID}))
	}
	o.requests.record(err)
	return err
}

// readKeys reads the keys. The verifier reads them again when it needs them.
func (o *OIDC) readKeys(ctx context.Context, provider *oidc.Provider) error {
	var document struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&document); err != nil {
		return fmt.Errorf("decode the discovery document: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, document.Keys, nil)
	if err != nil {
		return fmt.Errorf("read jwks_uri: %w", err)
	}
	response, err := o.http.Do(r)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// IssuerUnreachable is returned for a token that cannot be checked without its issuer.
type IssuerUnreachable struct{ Issuer string }

func (i IssuerUnreachable) Error() string {
	return fmt.Sprintf("OIDC issuer %s of the token is unreachable from the permission centre; retry later, or ask an admin to check the network and the key oidc of ACCESS_FILE", i.Issuer)
}

// reservedPrefix begins the names that Kubernetes reserves, among them the users of ServiceAccounts. TokenReviews
// give them in the centre's own cluster.
const reservedPrefix = "system:"

// ReservedName is returned for a token with a name that, after the prefix of its issuer, is reserved.
type ReservedName struct{ Name, Issuer string }

func (r ReservedName) Error() string {
	return fmt.Sprintf("name %s of the token is not accepted from OIDC issuer %s, because names that begin with %s are of the centre's own cluster; ask an admin to change prefix of the issuer in the key oidc of ACCESS_FILE", r.Name, r.Issuer, reservedPrefix)
}

// Authenticate verifies the signature, issuer, audience and expiry.
func (o *OIDC) Authenticate(ctx context.Context, token string) (User, bool, error) {
	if issuerOf(token) != o.config.Issuer {
		return User{}, false, nil
	}
	verifier := o.verifier.Load()
	if verifier == nil {
		return User{}, false, IssuerUnreachable{o.config.Issuer}
	}
	verified, err := verifier.Verify(ctx, token)
	switch {
	case err == nil:
	case !errors.As(err, new(*oidc.TokenExpiredError)) && o.Failure() != nil:
		return User{}, false, IssuerUnreachable{o.config.Issuer} // perhaps the key of the token could not be read
	default:
		return User{}, false, nil //nolint:nilerr // another authenticator may accept it
	}
	var claims map[string]any
	if err := verified.Claims(&claims); err != nil {
		return User{}, false, nil //nolint:nilerr // not a token of this issuer
	}
	name, ok := claims[o.config.UsernameClaim].(string)
	if !ok || name == "" {
		return User{}, false, nil
	}
	user := User{Name: o.config.Prefix + name}
	groups, _ := claims[o.config.GroupsClaim].([]any)
	for _, g := range groups {
		if g, ok := g.(string); ok {
			user.Groups = append(user.Groups, o.config.Prefix+g)
		}
	}
	for _, name := range user.OwnerNames() {
		if strings.HasPrefix(name, reservedPrefix) {
			return User{}, false, ReservedName{name, o.config.Issuer}
		}
	}
	return user, true, nil
}

// issuerOf returns the issuer that a token claims, unverified; empty if it is not a
// JWT.
func issuerOf(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return ""
	}
	return claims.Issuer
}
