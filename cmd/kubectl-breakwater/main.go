// kubectl-breakwater is the kubectl plugin: `kubectl breakwater`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/breakwater-dev/breakwater/cli"
)

// version is set by the linker for a release: -X main.version=v0.1.0.
var version = ""

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the plugin at once: reads of discovery and of stdin do not heed the context.
	context.AfterFunc(ctx, stop)
	code := cli.Run(ctx, version, os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	stop()
	os.Exit(code)
}
