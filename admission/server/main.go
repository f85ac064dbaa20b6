package server

import (
	"time"

	"knative.dev/pkg/injection"
	"knative.dev/pkg/injection/sharedmain"
	"knative.dev/pkg/signals"
	"knative.dev/pkg/webhook"
	"knative.dev/pkg/webhook/certificates"
)

const (
	defaultPort = 8443
	// quiet is how long no request must have come before a process that is to
	// end stops listening: API servers hear late that it is no endpoint any more.
	quiet = 5 * time.Second
)

// Main serves webhooks at a Service, with the certificate of a Secret, until the
// process is to end. The component names it in logs, metrics and Leases; answer
// makes the controller that answers, others what runs beside.
func Main(component, service, secret string, answer func(*Readiness) injection.ControllerConstructor, others ...injection.ControllerConstructor) {
	ready := &Readiness{}
	ctx := signals.NewContext()
	ctx = injection.AddReadiness(ctx, ready.Handler(ctx))
	ctx = webhook.WithOptions(ctx, webhook.Options{
		ServiceName: service,
		SecretName:  secret,
		Port:        webhook.PortFromEnv(defaultPort),
		GracePeriod: quiet,
	})
	injection.Default.RegisterInformerFactory(OneSecret(secret))
	sharedmain.MainWithContext(ctx, component, append([]injection.ControllerConstructor{certificates.NewController, answer(ready)}, others...)...)
}
