package functions

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/altershield"
)

// ConfigAge is how old the configuration may be that a process works with: a
// change is in force within 2 s everywhere, and a burst of events does not read
// two objects each.
const ConfigAge = time.Second

// Server reads how the AlterShield server is reached: two reads of single
// objects are cheaper than an informer that lives as long as a few events. The
// client is kept while the configuration stays the same, and with it its
// connections and token bucket.
type Server struct {
	Kube kubernetes.Interface
	// Clock tells the age of what was read. Default the machine's.
	Clock   clock.PassiveClock
	maxAge  time.Duration
	clients altershield.Clients

	mu     sync.Mutex
	config altershield.Config
	read   time.Time
}

// NewServer returns a Server that reads through kube for each event; options
// are for tests.
func NewServer(kube kubernetes.Interface, options ...altershield.Option) *Server {
	return &Server{Kube: kube, Clock: clock.RealClock{}, clients: altershield.Clients{Options: options}}
}

// CachedServer returns a Server that reads at most once in ConfigAge.
func CachedServer(kube kubernetes.Interface) *Server {
	s := NewServer(kube)
	s.maxAge = ConfigAge
	return s
}

// Config returns the configuration as it is now. Objects that are not there
// mean that no server and no token are configured. One that is there and makes
// no sense is a *ConfigError. Only what was read without an error is cached.
func (s *Server) Config(ctx context.Context) (altershield.Config, error) {
	if s.maxAge == 0 {
		return s.readConfig(ctx)
	}
	// Whoever comes while it is read waits for that, instead of reading too.
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Clock.Now()
	if !s.read.IsZero() && now.Sub(s.read) < s.maxAge {
		return s.config, nil
	}
	config, err := s.readConfig(ctx)
	if err != nil {
		return config, err
	}
	s.config, s.read = config, now
	return config, nil
}

func (s *Server) readConfig(ctx context.Context) (altershield.Config, error) {
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
