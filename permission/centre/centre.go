// Package centre is the permission centre: it wires the store, the queue, the
// state machine of applications (package lifecycle) and the REST interface.
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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/permission/authlimit"
	"github.com/breakwater-dev/breakwater/permission/centre/access"
	"github.com/breakwater-dev/breakwater/permission/centre/lifecycle"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/queue"
	"github.com/breakwater-dev/breakwater/permission/centre/ratelimit"
	"github.com/breakwater-dev/breakwater/permission/centre/registry"
	api "github.com/breakwater-dev/breakwater/permission/centre/rest"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// Centre is a replica of the permission centre.
type Centre struct {
	config   Config
	log      *slog.Logger
	store    *store.Store
	queue    *queue.Queue
	engine   *lifecycle.Engine
	watchers *lifecycle.Watchers
	metrics  *instruments
	server   *api.Server
	stopping chan struct{}
}

// New opens the store and creates a replica.
func New(ctx context.Context, config Config, log *slog.Logger) (*Centre, error) {
	egress, err := provider.NewEgress(config.ProviderHosts, config.ProviderNetworks, []string{config.APIServer})
	if err != nil {
		return nil, fmt.Errorf("parse PROVIDER_HOSTS and PROVIDER_NETWORKS: %w", err)
	}
	roles, authenticators, err := authentication(ctx, config)
	if err != nil {
		return nil, err
	}
	s, err := store.Open(ctx, config.Store)
	if err != nil {
		return nil, err
	}
	c := &Centre{config: config, log: log, store: s, watchers: &lifecycle.Watchers{}, metrics: newInstruments(s), stopping: make(chan struct{})}
	now := clock.RealClock{}
	factory := provider.Factory{Egress: egress, Credentials: provider.Credentials{Dir: config.CredentialsDir}}
	c.engine = &lifecycle.Engine{Store: s, Limiter: ratelimit.New(s, now), Breaker: &lifecycle.Breakers{}, Clients: &provider.Cache{Factory: factory},
		Clock: now, Random: rand.Float64, Notifier: c.watchers, Metrics: c.metrics, Log: log, TakeoverAfter: config.TakeoverAfter, Stopping: c.stopping}
	if c.queue, err = queue.New(s, c.engine, config.Workers, now.Now, warningsOnly(log)); err != nil {
		s.Close()
		return nil, err
	}
	c.engine.Queue = c.queue
	reg := &registry.Registry{Store: s, Factory: factory, Clock: now, RetryLeaks: c.engine.RetryLeaks, StartProvider: c.queue.StartProvider}
	c.server = &api.Server{Store: s, Registry: reg, Engine: c.engine, Watchers: c.watchers, Authenticators: authenticators, Roles: roles,
		Clock: now, Log: log, Observe: c.metrics.request, Stopping: c.stopping,
		AuthLimit: authlimit.New(func() float64 { return config.RejectedRequestsPerMinute }, now)}
	return c, nil
}

// warningsOnly drops the info and debug lines of River.
func warningsOnly(log *slog.Logger) *slog.Logger {
	return slog.New(warningHandler{log.Handler()})
}

type warningHandler struct{ slog.Handler }

// Enabled implements slog.Handler.
func (l warningHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && l.Handler.Enabled(ctx, level)
}

func authentication(ctx context.Context, config Config) (access.Roles, []access.Authenticator, error) {
	file, err := access.ReadConfig(config.AccessFile)
	if err != nil {
		return file.Roles, nil, err
	}
	var all []access.Authenticator
	if config.TokensFile != "" {
		static, err := access.NewStatic(config.TokensFile)
		if err != nil {
			return file.Roles, nil, err
		}
		all = append(all, static)
	}
	for _, o := range file.OIDC {
		issuer, err := access.NewOIDC(ctx, o)
		if err != nil {
			return file.Roles, nil, err
		}
		all = append(all, issuer)
	}
	if file.TokenReview != nil {
		cluster, err := rest.InClusterConfig()
		if err != nil {
			return file.Roles, nil, fmt.Errorf("create client for tokenReview: %w", err)
		}
		client, err := kubernetes.NewForConfig(cluster)
		if err != nil {
			return file.Roles, nil, fmt.Errorf("create client for tokenReview: %w", err)
		}
		all = append(all, access.NewKubernetes(client, file.TokenReview.Audience, clock.RealClock{}))
	}
	if len(all) == 0 {
		return file.Roles, nil, fmt.Errorf("no authenticator is configured: set TOKENS_FILE, or tokenReview or oidc in %s", config.AccessFile)
	}
	return file.Roles, all, nil
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
	if err := c.startProviderQueues(ctx); err != nil {
		return err
	}
	c.log.Info("permission centre started", "address", listener.Addr().String(), "admin", admin.Addr().String(), "shared", c.store.Shared())
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.queue.Run(ctx, c.config.DrainTimeout) })
	g.Go(func() error { return c.serveHTTP(ctx, listener, c.server.Handler(), c.config.TLSCertFile != "") })
	g.Go(func() error { return c.serveHTTP(ctx, admin, c.adminHandler(), false) })
	g.Go(func() error { return c.engine.RunRecovery(ctx) })
	g.Go(func() error { return c.runEvery(ctx, 2*time.Second, c.startProviderQueues) })
	g.Go(func() error { return c.runEvery(ctx, time.Hour, c.prune) })
	if c.store.Shared() {
		g.Go(func() error { return c.engine.PollChanges(ctx, c.watchers) })
	}
	g.Go(func() error {
		<-ctx.Done()
		close(c.stopping)
		return nil
	})
	return g.Wait()
}

// startProviderQueues starts the queues of all providers, including those that
// another replica registered.
func (c *Centre) startProviderQueues(ctx context.Context) error {
	page := store.Page{Limit: 500}
	for {
		providers, err := c.store.View(ctx).Objects(store.KindProvider, page)
		if err != nil {
			return fmt.Errorf("list providers: %w", err)
		}
		for _, p := range providers {
			page.After = p.Name
			if err := c.queue.StartProvider(p.Name); err != nil {
				return fmt.Errorf("start queue of provider %s: %w", p.Name, err)
			}
		}
		if len(providers) < page.Limit {
			return nil
		}
	}
}

func (c *Centre) prune(ctx context.Context) error {
	return c.store.Write(ctx, func(tx store.Tx) error { return tx.Prune(time.Now().Add(-c.config.Retention)) })
}

// runEvery runs do at every interval until ctx ends, and logs errors.
func (c *Centre) runEvery(ctx context.Context, interval time.Duration, do func(context.Context) error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := do(ctx); err != nil && ctx.Err() == nil {
				c.log.Error("periodic task failed", "error", err)
			}
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
