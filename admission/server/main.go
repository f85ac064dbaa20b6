package server

import (
	"time"

	"knative.dev/pkg/injection"
	"knative.dev/pkg/signals"
	"knative.dev/pkg/webhook"
	"knative.dev/pkg/webhook/certificates"

	"github.com/breakwater-dev/breakwater/internal/leaderelection"
)

const (
	defaultPort = 8443
	// quietPeriod is how long a terminating process must get no request before
	// it stops listening: API servers learn late that it is no endpoint any more.
	quietPeriod = 5 * time.Second
)

// Main serves webhooks at a Service, with the certificate of a Secret, until the
// process receives a signal. component is the name of the process in logs,
// metrics and Leases; answer builds the controller that serves the webhooks,
// others build further controllers.
func Main(component, service, secret string, answer func(*Readiness) injection.ControllerConstructor, others ...injection.ControllerConstructor) {
	ready := &Readiness{}
	ctx := signals.NewContext()
	ctx = injection.AddReadiness(ctx, ready.Handler(ctx))
	ctx = webhook.WithOptions(ctx, webhook.Options{
		ServiceName: service,
		SecretName:  secret,
		Port:        webhook.PortFromEnv(defaultPort),
		GracePeriod: quietPeriod,
	})
	injection.Default.RegisterInformerFactory(SecretInformerFactory(secret))
	leaderelection.Main(ctx, component, injection.ParseAndGetRESTConfigOrDie(),
		append([]injection.ControllerConstructor{certificates.NewController, answer(ready)}, others...)...)
}
