package functions

import (
	"context"

	"k8s.io/client-go/kubernetes"

	"github.com/breakwater-dev/breakwater/altershield"
)

// Server reads how the AlterShield server is reached, anew for each event: two
// reads of single objects are cheaper than an informer that lives as long as
// one event, and a changed token counts at once. The client is kept while the
// configuration stays the same, and with it its connections and token bucket.
type Server struct {
	Kube    kubernetes.Interface
	clients altershield.Clients
}

// NewServer returns a Server that reads through kube; options are for tests.
func NewServer(kube kubernetes.Interface, options ...altershield.Option) *Server {
	return &Server{Kube: kube, clients: altershield.Clients{Options: options}}
}

// Config returns the configuration as it is now. Objects that are not there
// mean that no server and no token are configured. One that is there and makes
// no sense is a *ConfigError.
func (s *Server) Config(ctx context.Context) (altershield.Config, error) {
	config, secret, err := altershield.ReadConfig(ctx, s.Kube.CoreV1())
	if err != nil {
		return altershield.Config{}, err
	}
	parsed, err := altershield.ParseConfig(config, secret)
	if err != nil {
		return altershield.Config{}, &ConfigError{Err: err}
	}
	return parsed, nil
}

// ConfigError says that somebody has to mend the configuration. Its text holds
// no secret and may be shown.
type ConfigError struct {
	// Err names the keys and what is wrong with them.
	Err error
}

// Error implements error.
func (e *ConfigError) Error() string { return e.Err.Error() }

// Unwrap implements errors.Unwrap.
func (e *ConfigError) Unwrap() error { return e.Err }

// Client returns the client and its configuration, or a nil client where no
// server is configured.
func (s *Server) Client(ctx context.Context) (*altershield.Client, altershield.Config, error) {
	config, err := s.Config(ctx)
	if err != nil || !config.Configured() {
		return nil, config, err
	}
	return s.clients.For(config), config, nil
}
