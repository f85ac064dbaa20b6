// The webhook answers the API server: which version a release is, whether a
// suspended Deployment may change, whether an OpsConfigInfo is well-formed.
package main

import (
	"github.com/breakwater-dev/breakwater/admission/process"
	"github.com/breakwater-dev/breakwater/admission/serve"
)

func main() { process.Main("webhook", serve.ServiceName, serve.SecretName, serve.NewController) }
