package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"

	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/signals"
	"knative.dev/pkg/webhook"

	"github.com/breakwater-dev/breakwater/internal/leaderelection"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/pagedlist"
	"github.com/breakwater-dev/breakwater/internal/servingcert"
	"github.com/breakwater-dev/breakwater/internal/wiring"
	"github.com/breakwater-dev/breakwater/reconciler/certificates"
)

const defaultPort = 8443

// Process is a process that serves webhooks.
type Process struct {
	readiness readiness
	// terminating is canceled when the process receives a signal.
	terminating context.Context //nolint:containedctx // the life of the process
	// end stops the controllers and the caches.
	end context.CancelFunc
	// handler serves the webhooks with the certificate, callers checks who calls. NewController sets the three.
	handler     http.Handler
	certificate *certificate
	callers     *callers
	// running has the server and the sender of events.
	running sync.WaitGroup
}

// Options describe a process that serves webhooks at a Service, with the certificate of
// a Secret.
type Options struct {
	// Component is the name of the process in logs, metrics and Leases.
	Component string
	// Service and Secret are names in SystemNamespace.
	Service, Secret string
	// Webhooks builds the controller that serves the webhooks.
	Webhooks func(*Process) injection.ControllerConstructor
	// Others build further controllers.
	Others []injection.ControllerConstructor
}

// Main runs a process until it receives a signal.
func Main(o Options) {
	ctx, constructors, wait := o.Controllers(signals.NewContext(), webhook.PortFromEnv(defaultPort))
	config := injection.ParseAndGetRESTConfigOrDie()
	pagedlist.LimitPages(config)
	leaderelection.Main(ctx, o.Component, config, constructors...)
	wait()
}

// Controllers returns the constructors of the controllers, their context, and a function
// that waits until the process has stopped serving and sending events. The process serves at
// port until terminating ends and its requests are drained; then it ends the context.
func (o Options) Controllers(terminating context.Context, port int) (context.Context, []injection.ControllerConstructor, func()) {
	p := &Process{terminating: terminating}
	// A terminating process decides requests until its connections are closed. Its
	// caches must be current until then, or it would not know new budgets.
	ctx, end := context.WithCancel(context.WithoutCancel(p.terminating))
	p.end = end
	context.AfterFunc(p.terminating, func() {
		if !p.readiness.listening.Load() {
			end()
		}
	})
	ctx = injection.AddReadiness(ctx, p.readiness.Handler(p.terminating))
	ctx = webhook.WithOptions(ctx, webhook.Options{
		ServiceName: o.Service,
		SecretName:  o.Secret,
		Port:        port,
	})
	injection.Default.RegisterInformerFactory(SecretInformerFactory(o.Secret))
	constructors := append([]injection.ControllerConstructor{certificates.NewWebhookController, o.Webhooks(p)}, o.Others...)
	return ctx, append(constructors, p.newServer), p.running.Wait
}

// newServer returns the controller that starts to serve once the caches are
// synced. sharedmain would serve with a server of Knative, which cannot close
// connections gracefully (see drain.Handler), and would end the caches first.
func (p *Process) newServer(ctx context.Context, _ configmap.Watcher) *controller.Impl {
	return wiring.OnceSynced(ctx, "server", func() {
		p.running.Go(func() {
			defer p.end()
			if err := p.serve(ctx); err != nil {
				logging.FromContext(ctx).Fatalw("could not serve webhooks", "error", err)
			}
		})
	})
}

// serve serves the webhooks until the process is terminating and no request
// arrives any more.
func (p *Process) serve(ctx context.Context) error {
	if p.handler == nil {
		return errors.New("no webhooks")
	}
	options := webhook.GetOptions(ctx)
	config, err := tlsConfig(p.certificate)
	if err != nil {
		return fmt.Errorf("configure TLS: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", ":"+strconv.Itoa(options.Port))
	if err != nil {
		return err
	}
	// The metric shows the loss of the Secret: a process that starts cannot serve without it.
	observed := config.Clone()
	observed.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.certificate.inSecret() }
	servingcert.ObserveExpiry(metrics.Meter(), options.ServiceName, observed)
	p.readiness.listening.Store(true)
	return serve(p.terminating, listener, config, options.ServiceName, p.callers.handler, p.handler)
}
