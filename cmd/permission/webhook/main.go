// The permission webhook answers the API server: which pods need permissions
// before they start, and whether those exist.
package main

import (
	"github.com/breakwater-dev/breakwater/admission/permission"
	"github.com/breakwater-dev/breakwater/admission/server"
	"github.com/breakwater-dev/breakwater/internal/version"
)

func main() {
	version.ExitIfAsked()
	server.Main(server.Options{
		Component: "permission-webhook", Service: permission.ServiceName, Secret: permission.SecretName,
		Webhooks: permission.NewController,
	})
}
