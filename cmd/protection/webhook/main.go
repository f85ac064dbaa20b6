// The protection webhook answers the API server: whether pods may become
// unavailable now.
package main

import (
	"github.com/breakwater-dev/breakwater/admission/protection"
	"github.com/breakwater-dev/breakwater/admission/server"
)

func main() { server.Main(protection.Options()) }
