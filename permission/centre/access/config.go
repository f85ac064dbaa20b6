package access

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// Config is the file that ACCESS_FILE names.
type Config struct {
	Roles `json:",inline"`
	// TokenReview, when set, believes tokens of the cluster that the centre runs in.
	TokenReview *TokenReviewConfig `json:"tokenReview,omitempty"`
	OIDC        []OIDCConfig       `json:"oidc,omitempty"`
}

// TokenReviewConfig is for tokens of the centre's own cluster.
type TokenReviewConfig struct {
	// Audience is permission-centre unless told.
	Audience string `json:"audience,omitempty"`
}

// ReadConfig reads the file.
func ReadConfig(path string) (Config, error) {
	var c Config
	text, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("access: %w", err)
	}
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		return c, fmt.Errorf("access: %s: %w", path, err)
	}
	if c.TokenReview != nil && c.TokenReview.Audience == "" {
		c.TokenReview.Audience = "permission-centre"
	}
	return c, nil
}
