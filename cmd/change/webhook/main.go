// The webhook answers the API server: which version a release is, whether a suspended
// workload may change, whether a release passes its release check, and whether an
// OpsConfigInfo or ConfigMap config-workloads is valid. It also issues the certificate of
// service openapi.
package main

import (
	"github.com/breakwater-dev/breakwater/admission/change"
	"github.com/breakwater-dev/breakwater/admission/server"
	"github.com/breakwater-dev/breakwater/internal/version"
	"github.com/breakwater-dev/breakwater/reconciler/certificates"
)

func main() {
	version.ExitIfAsked()
	options := change.Options()
	options.Others = append(options.Others, certificates.NewController(certificates.CertsOfChange()))
	server.Main(options)
}
