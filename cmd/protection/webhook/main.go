// The protection webhook answers the API server: whether pods may become unavailable or be
// deleted now (budgets and flow controls), whether a protected Namespace or
// CustomResourceDefinition may be deleted, and whether a budget or flow control is valid.
package main

import (
	"github.com/breakwater-dev/breakwater/admission/protection"
	"github.com/breakwater-dev/breakwater/admission/server"
	"github.com/breakwater-dev/breakwater/internal/version"
)

func main() {
	version.ExitIfAsked()
	server.Main(protection.Options())
}
