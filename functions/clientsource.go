package functions

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/altershield"
)

// ConfigCacheTTL is the maximum age of a cached configuration. A change takes effect in all
// processes within 2 s, and a burst of events does not read two objects for each event.
const ConfigCacheTTL = time.Second

// ClientSource reads the configuration of the AlterShield server and returns clients
// for it. Two reads of single objects are cheaper than an informer in a process that
// lives for a few events. The client, with its connections and its rate limit, is
// reused while the configuration is unchanged.
type ClientSource struct {
	Kube kubernetes.Interface
	// Clock determines the age of the cached configuration. Default the real clock.
	Clock   clock.PassiveClock
	maxAge  time.Duration
	clients altershield.CurrentClient
	// replicas is the number of processes that share the rate limit.
	replicas int

	mu sync.Mutex
	// config is cached for Config, and callbacks for CallbackConfig.
	config, callbacks cachedConfig
}

// cachedConfig is a configuration, or the error of an invalid one, and when it was read.
type cachedConfig struct {
	config altershield.Config
	err    error
	read   time.Time
}

// NewClientSource returns a ClientSource that reads the configuration at each call;
// options are for tests.
func NewClientSource(kube kubernetes.Interface, options ...altershield.Option) *ClientSource {
	return &ClientSource{Kube: kube, Clock: clock.RealClock{}, clients: altershield.CurrentClient{Options: options}}
}

// NewReplicaClientSource returns the ClientSource of a replica of a function. It reads the
// configuration at most once within ConfigCacheTTL. Its clients have the rate limit of one replica:
// the configured one divided by the number of replicas.
func NewReplicaClientSource(kube kubernetes.Interface, replicas int) *ClientSource {
	s := NewClientSource(kube)
	s.maxAge, s.replicas = ConfigCacheTTL, replicas
	return s
}

// Config returns the configuration. Without the objects, no server and no token are
// configured. An invalid object is a *ConfigError.
func (s *ClientSource) Config(ctx context.Context) (altershield.Config, error) {
	return s.cached(ctx, &s.config, altershield.ParseConfig)
}

// CallbackConfig is Config with only what callbacks depend on: a mistake in another key is no
// *ConfigError.
func (s *ClientSource) CallbackConfig(ctx context.Context) (altershield.Config, error) {
	return s.cached(ctx, &s.callbacks, altershield.ParseCallbackConfig)
}

// configParser parses the objects of the configuration.
type configParser func(*corev1.ConfigMap, *corev1.Secret) (altershield.Config, error)

// cached returns the cached configuration, or reads it.
func (s *ClientSource) cached(ctx context.Context, c *cachedConfig, parse configParser) (altershield.Config, error) {
	if s.maxAge == 0 {
		return s.readConfig(ctx, parse)
	}
	// The read is under the lock, so that concurrent callers share it.
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Clock.Now()
	if !c.read.IsZero() && now.Sub(c.read) < s.maxAge {
		return c.config, c.err
	}
	config, err := s.readConfig(ctx, parse)
	if err == nil || errors.As(err, new(*ConfigError)) {
		*c = cachedConfig{config, err, now}
	}
	return config, err
}

func (s *ClientSource) readConfig(ctx context.Context, parse configParser) (altershield.Config, error) {
	config, secret, err := altershield.ReadConfig(ctx, s.Kube.CoreV1())
	if err != nil {
		return altershield.Config{}, err
	}
	parsed, err := parse(config, secret)
	if err != nil {
		return altershield.Config{}, &ConfigError{Err: err}
	}
	return parsed, nil
}

// Client returns the client and its configuration. The client is nil if no server is
// configured.
func (s *ClientSource) Client(ctx context.Context) (*altershield.Client, altershield.Config, error) {
	config, err := s.Config(ctx)
	if err != nil || !config.Configured() {
		return nil, config, err
	}
	return s.clients.For(config.ShareOf(s.replicas)), config, nil
}
