package access

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// Config is the content of ACCESS_FILE.
type Config struct {
	Roles `json:",inline"`
	// TokenReview, if set, accepts tokens of the cluster that the centre runs in.
	TokenReview *TokenReviewConfig `json:"tokenReview,omitempty"`
	OIDC        []OIDCConfig       `json:"oidc,omitempty"`
}

// TokenReviewConfig configures the TokenReview of tokens of the centre's own cluster.
type TokenReviewConfig struct {
	// Audience is the required audience; default permission-centre.
	Audience string `json:"audience,omitempty"`
}

// ReadConfig reads ACCESS_FILE.
func ReadConfig(path string) (Config, error) {
	var c Config
	text, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("read access file: %w", err)
	}
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		return c, fmt.Errorf("parse access file %s: %w", path, err)
	}
	if c.TokenReview != nil && c.TokenReview.Audience == "" {
		c.TokenReview.Audience = "permission-centre"
	}
	for i, issuer := range c.OIDC {
		if err := issuer.validate(); err != nil {
			return c, fmt.Errorf("parse access file %s: oidc[%d].%w", path, i, err)
		}
	}
	return c, nil
}
