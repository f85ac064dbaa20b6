// The protection webhook answers the API server: whether pods may become
// unavailable now.
package main

import (
	"time"

	"knative.dev/pkg/injection"
	"knative.dev/pkg/injection/sharedmain"
	"knative.dev/pkg/signals"
	"knative.dev/pkg/webhook"
	"knative.dev/pkg/webhook/certificates"

	"github.com/breakwater-dev/breakwater/admission/process"
	"github.com/breakwater-dev/breakwater/admission/protection"
)

const (
	component   = "protection-webhook"
	defaultPort = 8443
	// quiet is how long no request must have come before a process that is to
	// end stops listening: API servers hear late that it is no endpoint any more.
	quiet = 5 * time.Second
)

func main() {
	ready := &process.Readiness{}
	ctx := signals.NewContext()
	ctx = injection.AddReadiness(ctx, ready.Handler(ctx))
	ctx = webhook.WithOptions(ctx, webhook.Options{
		ServiceName: protection.ServiceName,
		SecretName:  protection.SecretName,
		Port:        webhook.PortFromEnv(defaultPort),
		GracePeriod: quiet,
	})
	injection.Default.RegisterInformerFactory(process.OneSecret(protection.SecretName))
	sharedmain.MainWithContext(ctx, component, certificates.NewController, protection.NewController(ready), protection.NewEntry)
}
