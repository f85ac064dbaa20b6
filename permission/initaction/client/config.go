package client

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
)

// DefaultDeadline is how long one round of requests lasts by default.
const DefaultDeadline = 10 * time.Minute

// Config is the configuration from the environment.
type Config struct {
	// URL is the URL of the POST request.
	URL       string
	Sets      []string
	TokenFile string
	// Roots are the certificates that the client trusts; nil means those of the system.
	Roots *x509.CertPool
	// Deadline is how long a round of requests lasts. Then the next round begins.
	Deadline time.Duration
}

// ReadConfig reads the environment. Its error names the invalid variable.
func ReadConfig(getenv func(string) string) (Config, error) {
	c := Config{TokenFile: getenv(protocol.EnvTokenFile), Deadline: DefaultDeadline}
	server, err := url.Parse(getenv(protocol.EnvServer))
	if err != nil || server.Host == "" || (server.Scheme != "http" && server.Scheme != "https") {
		return Config{}, fmt.Errorf("%s %q: must be a URL such as https://init-action-server", protocol.EnvServer, getenv(protocol.EnvServer))
	}
	c.URL = server.JoinPath(protocol.AuthorizePath).String()
	c.Sets = strings.FieldsFunc(getenv(protocol.EnvSets), func(r rune) bool { return r == ',' || r == ' ' })
	if len(c.Sets) == 0 {
		return Config{}, fmt.Errorf("%s: must list at least one permission set", protocol.EnvSets)
	}
	if c.TokenFile == "" {
		return Config{}, fmt.Errorf("%s: must be a path", protocol.EnvTokenFile)
	}
	if ca := getenv(protocol.EnvCA); ca != "" {
		if c.Roots, err = x509.SystemCertPool(); err != nil {
			c.Roots = x509.NewCertPool()
		}
		if !c.Roots.AppendCertsFromPEM([]byte(ca)) {
			return Config{}, fmt.Errorf("%s: must have certificates in PEM", protocol.EnvCA)
		}
	}
	if raw := getenv(protocol.EnvDeadline); raw != "" {
		if c.Deadline, err = time.ParseDuration(raw); err != nil || c.Deadline <= 0 {
			return Config{}, fmt.Errorf("%s %q: must be a duration such as 10m", protocol.EnvDeadline, raw)
		}
	}
	return c, nil
}
