package centre

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/kelseyhightower/envconfig"
)

// minRetention is more than the longest interval of the pod reports, 24 h: an application is kept as long as reports
// list its pod.
const minRetention = 48 * time.Hour

// Config is the environment of the permission centre.
type Config struct {
	// Listen is the address of the REST interface; TLS if a certificate is set.
	// A renewed certificate is read again.
	Listen      string `envconfig:"LISTEN" default:":8080"`
	TLSCertFile string `envconfig:"TLS_CERT_FILE"`
	TLSKeyFile  string `envconfig:"TLS_KEY_FILE"`
	// AdminListen is the address of /healthz, /readyz and /metrics.
	AdminListen string `envconfig:"ADMIN_LISTEN" default:":9090"`
	// Store is sqlite:<path> or postgres://…; StoreFile is a file with the same
	// value, for a Secret.
	Store     string `envconfig:"STORE" default:"sqlite:/var/lib/permissioncentre/centre.db"`
	StoreFile string `envconfig:"STORE_FILE"`
	// CredentialsDir is the mount of the Secret with the providers' credentials.
	CredentialsDir string `envconfig:"CREDENTIALS_DIR" default:"/etc/permissioncentre/credentials"`
	// AccessFile configures authentication and roles; TokensFile has static
	// tokens.
	AccessFile string `envconfig:"ACCESS_FILE" default:"/etc/permissioncentre/access/access.yaml"`
	TokensFile string `envconfig:"TOKENS_FILE"`
	// ProviderHosts are the hosts that endpoints may name, ProviderNetworks the
	// networks (CIDR) that they may resolve to.
	ProviderHosts    []string `envconfig:"PROVIDER_HOSTS"`
	ProviderNetworks []string `envconfig:"PROVIDER_NETWORKS"`
	// UnauthenticatedRequestsPerMinute is the number of requests without a valid token (401) of an
	// address per minute before it is answered 429; 0 is unlimited.
	UnauthenticatedRequestsPerMinute float64 `envconfig:"UNAUTHENTICATED_REQUESTS_PER_MINUTE" default:"60"`
	// ConcurrentCallsPerProvider is the number of concurrent calls to one provider, for each
	// replica.
	ConcurrentCallsPerProvider int `envconfig:"CONCURRENT_CALLS_PER_PROVIDER" default:"32"`
	// DrainTimeout is the time for calls in progress when the process stops.
	DrainTimeout time.Duration `envconfig:"DRAIN_TIMEOUT" default:"25s"`
	// Retention is how long audit entries, revoked applications and the UIDs of ended pods are kept.
	// The applications of a pod are kept as long after the last report that lists the pod. At least minRetention.
	Retention time.Duration `envconfig:"RETENTION" default:"2160h"`
	// LogLevel is debug, info, warn or error.
	LogLevel slog.Level `envconfig:"LOG_LEVEL" default:"info"`
	// APIServer is never called for a provider; Kubernetes sets it.
	APIServer string `envconfig:"KUBERNETES_SERVICE_HOST"`
}

// ReadConfig reads the environment.
func ReadConfig() (Config, error) {
	var c Config
	if err := envconfig.Process("", &c); err != nil {
		return c, fmt.Errorf("read environment: %w", err)
	}
	if c.StoreFile != "" {
		text, err := os.ReadFile(c.StoreFile)
		if err != nil {
			return c, fmt.Errorf("read STORE_FILE: %w", err)
		}
		c.Store = strings.TrimSpace(string(text))
	}
	if !(c.UnauthenticatedRequestsPerMinute >= 0 && c.UnauthenticatedRequestsPerMinute <= 100_000) {
		return c, fmt.Errorf("UNAUTHENTICATED_REQUESTS_PER_MINUTE must be from 0 to 100000")
	}
	if c.ConcurrentCallsPerProvider < 1 || c.DrainTimeout <= 0 {
		return c, fmt.Errorf("CONCURRENT_CALLS_PER_PROVIDER and DRAIN_TIMEOUT must be greater than 0")
	}
	if c.Retention < minRetention {
		return c, fmt.Errorf("RETENTION must be at least 48h, which is longer than the longest pod-report-interval; it is %s", c.Retention)
	}
	if (c.TLSCertFile == "") != (c.TLSKeyFile == "") {
		return c, fmt.Errorf("TLS_CERT_FILE and TLS_KEY_FILE must be set together")
	}
	return c, nil
}
