// Command functions runs one of the functions of part change, function notify or service openapi; its
// argument is the name. They share one image of 16 MB, because nearly all its bytes are the same libraries.
package main

import (
	"context"
	"fmt"
	"log"
	"maps"
	"os"
	"slices"
	"strings"

	"knative.dev/pkg/signals"

	"github.com/breakwater-dev/breakwater/internal/process"
	"github.com/breakwater-dev/breakwater/internal/version"
)

// builders build the processes, by the names of their Knative Services, or of Deployment openapi.
var builders = map[string]func(context.Context, process.Clients) (process.Program, error){
	"callback":   buildCallback,
	"deadletter": buildDeadletter,
	"notify":     buildNotify,
	"openapi":    buildOpenAPI,
	"report":     buildReport,
	"submit":     buildSubmit,
	"verdict":    buildVerdict,
}

func main() {
	version.ExitIfAsked()
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(args []string) error {
	name := strings.Join(args, " ")
	build, ok := builders[name]
	if !ok {
		return fmt.Errorf("invalid arguments %q: use one of %s", args, strings.Join(slices.Sorted(maps.Keys(builders)), ", "))
	}
	return process.Run(signals.NewContext(), name, build)
}
