// The permission webhook answers the API server: which pods need permissions
// before they start, and whether those exist.
package main

import (
	"time"

	"knative.dev/pkg/injection"
	"knative.dev/pkg/injection/sharedmain"
	"knative.dev/pkg/signals"
	"knative.dev/pkg/webhook"
	"knative.dev/pkg/webhook/certificates"

	"github.com/breakwater-dev/breakwater/admission/permission"
	"github.com/breakwater-dev/breakwater/admission/process"
)

const (
	component   = "permission-webhook"
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
		ServiceName: permission.ServiceName,
		SecretName:  permission.SecretName,
		Port:        webhook.PortFromEnv(defaultPort),
		GracePeriod: quiet,
	})
	injection.Default.RegisterInformerFactory(process.OneSecret(permission.SecretName))
	sharedmain.MainWithContext(ctx, component, certificates.NewController, permission.NewController(ready))
}
