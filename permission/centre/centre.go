// Package centre is the permission centre: it wires the store, the state machine
// of applications (package lifecycle) and the REST interface.
package centre

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/internal/authlimit"
	"github.com/breakwater-dev/breakwater/internal/servingcert"
	"github.com/breakwater-dev/breakwater/permission/centre/access"
	"github.com/breakwater-dev/breakwater/permission/centre/lifecycle"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/ratelimit"
	"github.com/breakwater-dev/breakwater/permission/centre/registry"
	"github.com/breakwater-dev/breakwater/permission/centre/rest"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
	"github.com/breakwater-dev/breakwater/permission/notifier"
)

// firstPrune lets the first reports after an outage list their pods, which keeps the applications of these pods.
const firstPrune = 10 * time.Minute

// Centre is a replica of the permission centre.
type Centre struct {
	config   Config
	log      *slog.Logger
	store    *store.Store
	engine   *lifecycle.Engine
	notifier *notifier.Notifier
	metrics  *instruments
	server   *rest.Server
	issuers  []*access.OIDC
	stopping chan struct{}
}

// New opens the store and creates a replica.
func New(ctx context.Context, config Config, log *slog.Logger) (*Centre, error) {
	egress, err := provider.NewEgress(config.ProviderHosts, config.ProviderNetworks, []string{config.APIServer})
	if err != nil {
		return nil, fmt.Errorf("parse PROVIDER_HOSTS and PROVIDER_NETWORKS: %w", err)
	}
	a, err := newAuthentication(ctx, config)
	if err != nil {
		return nil, err
	}
	s, err := store.Open(ctx, config.Store)
	if err != nil {
		return nil, err
	}
	c := &Centre{config: config, log: log, store: s, notifier: notifier.New(), metrics: newInstruments(s, a.issuers), issuers: a.issuers,
		stopping: make(chan struct{})}
	if config.TLSCertFile != "" {
		c.metrics.observeCertificate(servingcert.ServerConfig(config.TLSCertFile, config.TLSKeyFile))
	}
	realClock := clock.RealClock{}
	factory := provider.Factory{Egress: egress, Credentials: provider.Credentials{Dir: config.CredentialsDir}}
	c.engine = &lifecycle.Engine{Store: s, Limiter: ratelimit.New(s, realClock, log), Breaker: &lifecycle.Breakers{}, Clients: &provider.Cache{Factory: factory},
		Clock: realClock, Random: rand.Float64, Notifier: c.notifier, Metrics: c.metrics, Log: log, ConcurrentCallsPerProvider: config.ConcurrentCallsPerProvider}
	reg := &registry.Registry{Store: s, Factory: factory, Clock: realClock}
	c.server = &rest.Server{Store: s, Registry: reg, Engine: c.engine, Notifier: c.notifier, Authenticators: a.authenticators, Roles: a.roles,
		Clock: realClock, Log: log, Observe: c.metrics.request, Stopping: c.stopping,
		AuthLimit: authlimit.New(func() float64 { return config.UnauthenticatedRequestsPerMinute }, realClock)}
	return c, nil
}

// Run serves until ctx ends, then drains.
func (c *Centre) Run(ctx context.Context) error {
	defer c.store.Close()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.config.Listen)
	if err != nil {
		return fmt.Errorf("listen on LISTEN: %w", err)
	}
	admin, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.config.AdminListen)
	if err != nil {
		return fmt.Errorf("listen on ADMIN_LISTEN: %w", err)
	}
	c.log.Info("permission centre started", "address", listener.Addr().String(), "admin", admin.Addr().String(), "shared", c.store.Shared())
	if !c.store.Shared() {
		name, err := c.store.NetworkFilesystem()
		if err != nil {
			return err
		}
		if name != "" {
			c.log.Error("SQLite is on a network file system, on which a second centre can corrupt it; use PostgreSQL, or a volume of block storage", "filesystem", name)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		c.engine.Run(ctx, c.config.DrainTimeout)
		return nil
	})
	g.Go(func() error { return c.serveHTTP(ctx, listener, c.server.Handler(), c.config.TLSCertFile != "") })
	g.Go(func() error { return c.serveHTTP(ctx, admin, c.adminHandler(), false) })
	g.Go(func() error { return c.prunePeriodically(ctx) })
	g.Go(func() error { return c.watchIssuers(ctx) })
	if c.store.Shared() {
		g.Go(func() error { return c.engine.PollChanges(ctx, c.notifier) })
	}
	g.Go(func() error {
		<-ctx.Done()
		close(c.stopping)
		return nil
	})
	return g.Wait()
}

func (c *Centre) prune(ctx context.Context) error {
	return c.store.Prune(ctx, time.Now().Add(-c.config.Retention))
}

// prunePeriodically prunes after firstPrune, because a process may restart more often than once an hour, and then each hour.
func (c *Centre) prunePeriodically(ctx context.Context) error {
	return c.runEvery(ctx, firstPrune, time.Hour, c.prune)
}

// runEvery runs do after a first delay and then at every interval until ctx ends, and logs errors.
func (c *Centre) runEvery(ctx context.Context, first, interval time.Duration, do func(context.Context) error) error {
	timer := time.NewTimer(first)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			timer.Reset(interval)
		}
		if err := do(ctx); err != nil && ctx.Err() == nil {
			c.log.Error("periodic task failed", "error", err)
		}
	}
}

// adminHandler serves the probes and metrics.
func (c *Centre) adminHandler() http.Handler {
	return newAdminHandler(c.metrics.registry, func(ctx context.Context) error {
		select {
		case <-c.stopping:
			return fmt.Errorf("stopping")
		default:
			return c.store.Ping(ctx)
		}
	})
}
