// The webhook answers the API server: which version a release is, whether a suspended
// workload may change, and whether an OpsConfigInfo is well-formed.
package main

import (
	"github.com/breakwater-dev/breakwater/admission/change"
	"github.com/breakwater-dev/breakwater/admission/server"
	"github.com/breakwater-dev/breakwater/internal/version"
)

func main() {
	version.ExitIfAsked()
	server.Main(change.Options())
}
