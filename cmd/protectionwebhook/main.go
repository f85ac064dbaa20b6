// The protection webhook answers the API server: whether pods may become
// unavailable now.
package main

import (
	"github.com/breakwater-dev/breakwater/admission/process"
	"github.com/breakwater-dev/breakwater/admission/protection"
)

func main() {
	process.Main("protection-webhook", protection.ServiceName, protection.SecretName, protection.NewController, protection.NewEntry)
}
