// Package centre puts the permission centre together: the store, the queue and
// its work, and the REST interface.
package centre

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/kelseyhightower/envconfig"
)

// Config is the environment of the permission centre.
type Config struct {
	// Listen is the REST interface's address; TLS when a certificate is given.
	// The certificate is read again when its file changes.
	Listen      string `envconfig:"LISTEN" default:":8080"`
	TLSCertFile string `envconfig:"TLS_CERT_FILE"`
	TLSKeyFile  string `envconfig:"TLS_KEY_FILE"`
	// AdminListen has /healthz, /readyz and /metrics.
	AdminListen string `envconfig:"ADMIN_LISTEN" default:":9090"`
	// Store is sqlite:<path> or postgres://…; StoreFile names a file with it,
	// for an address that holds a password.
	Store     string `envconfig:"STORE" default:"sqlite:/var/lib/permissioncentre/centre.db"`
	StoreFile string `envconfig:"STORE_FILE"`
	// CredentialsDir has the providers' credentials: a mounted Secret.
	CredentialsDir string `envconfig:"CREDENTIALS_DIR" default:"/etc/permissioncentre/credentials"`
	// AccessFile says who may what; TokensFile has static tokens, if any.
	AccessFile string `envconfig:"ACCESS_FILE" default:"/etc/permissioncentre/access/access.yaml"`
	TokensFile string `envconfig:"TOKENS_FILE"`
	// ProviderHosts may be named by providers' endpoints, ProviderNetworks
	// are where they may lead (CIDR).
	ProviderHosts    []string `envconfig:"PROVIDER_HOSTS"`
	ProviderNetworks []string `envconfig:"PROVIDER_NETWORKS"`
	// RefusalsPerMinute are those that an address may have before it is not heard
	// for a while; 0 is any number.
	RefusalsPerMinute float64 `envconfig:"REFUSALS_PER_MINUTE" default:"60"`
	// Workers is how many calls to one provider may be under way, for each replica.
	Workers int `envconfig:"WORKERS" default:"32"`
	// Patience is after how long a job that a dead replica had begun, before it
	// called a provider, is another's.
	Patience time.Duration `envconfig:"PATIENCE" default:"60s"`
	// Drain is how long calls that are under way may take when it stops.
	Drain time.Duration `envconfig:"DRAIN" default:"25s"`
	// Keep is how long audit and revoked applications are kept.
	Keep time.Duration `envconfig:"KEEP" default:"2160h"`
	// LogLevel is debug, info, warn or error.
	LogLevel slog.Level `envconfig:"LOG_LEVEL" default:"info"`
	// APIServer is never connected to for a provider; Kubernetes sets it.
	APIServer string `envconfig:"KUBERNETES_SERVICE_HOST"`
}

// ReadConfig reads the environment.
func ReadConfig() (Config, error) {
	var c Config
	if err := envconfig.Process("", &c); err != nil {
		return c, fmt.Errorf("environment: %w", err)
	}
	if c.StoreFile != "" {
		text, err := os.ReadFile(c.StoreFile)
		if err != nil {
			return c, fmt.Errorf("STORE_FILE: %w", err)
		}
		c.Store = strings.TrimSpace(string(text))
	}
	if !(c.RefusalsPerMinute >= 0 && c.RefusalsPerMinute <= 100_000) {
		return c, fmt.Errorf("REFUSALS_PER_MINUTE must be from 0 to 100000")
	}
	if c.Workers < 1 || c.Patience <= 0 || c.Drain <= 0 {
		return c, fmt.Errorf("WORKERS, PATIENCE and DRAIN must be above 0")
	}
	if (c.TLSCertFile == "") != (c.TLSKeyFile == "") {
		return c, fmt.Errorf("TLS_CERT_FILE and TLS_KEY_FILE are needed together")
	}
	return c, nil
}
