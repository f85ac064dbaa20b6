// The permission webhook answers the API server: which pods need permissions
// before they start, and whether their permission sets exist. It also issues the certificates of the
// permission centre and of the init-action-server.
package main

import (
	"knative.dev/pkg/injection"

	"github.com/breakwater-dev/breakwater/admission/permission"
	"github.com/breakwater-dev/breakwater/admission/server"
	"github.com/breakwater-dev/breakwater/internal/version"
	"github.com/breakwater-dev/breakwater/reconciler/certificates"
)

func main() {
	version.ExitIfAsked()
	server.Main(server.Options{
		Component: "permission-webhook", Service: permission.ServiceName, Secret: permission.SecretName,
		Webhooks: permission.NewController, Others: []injection.ControllerConstructor{certificates.NewController(certificates.CertsOfPermission())},
	})
}
