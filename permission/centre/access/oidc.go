package access

import (
	"context"
	"fmt"

	"github.com/coreos/go-oidc/v3/oidc"
)

// OIDCConfig configures a token issuer: a company's or another cluster's.
type OIDCConfig struct {
	Issuer string `json:"issuer"`
	// ClientID is the required audience.
	ClientID string `json:"clientID"`
	// UsernameClaim defaults to sub, GroupsClaim to groups.
	UsernameClaim string `json:"usernameClaim,omitempty"`
	GroupsClaim   string `json:"groupsClaim,omitempty"`
	// Prefix is prepended to user and group names to separate issuers.
	Prefix string `json:"prefix,omitempty"`
}

// OIDC authenticates tokens that an issuer signed.
type OIDC struct {
	config   OIDCConfig
	verifier *oidc.IDTokenVerifier
}

// NewOIDC reads the issuer's discovery document; keys are fetched when needed.
func NewOIDC(ctx context.Context, c OIDCConfig) (*OIDC, error) {
	provider, err := oidc.NewProvider(ctx, c.Issuer)
	if err != nil {
		return nil, fmt.Errorf("discover OIDC issuer %s: %w", c.Issuer, err)
	}
	if c.UsernameClaim == "" {
		c.UsernameClaim = "sub"
	}
	if c.GroupsClaim == "" {
		c.GroupsClaim = "groups"
	}
	return &OIDC{config: c, verifier: provider.Verifier(&oidc.Config{ClientID: c.ClientID})}, nil
}

// Authenticate verifies the signature, issuer, audience and expiry.
func (o *OIDC) Authenticate(ctx context.Context, token string) (User, bool, error) {
	verified, err := o.verifier.Verify(ctx, token)
	if err != nil {
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
	return user, true, nil
}
