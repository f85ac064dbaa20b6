// The protection webhook answers the API server: whether pods may become
// unavailable now.
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
