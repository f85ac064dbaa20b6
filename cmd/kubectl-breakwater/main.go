// kubectl-breakwater is the kubectl plugin: `kubectl breakwater`.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // auth-provider of a kubeconfig

	"github.com/breakwater-dev/breakwater/cli"
	"github.com/breakwater-dev/breakwater/internal/version"
)

// grace is how long a command may take to end after a signal; then the process exits. Reads of discovery and of stdin do
// not heed the context.
const grace = 500 * time.Millisecond

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		stop() // a second signal ends the plugin at once
		time.Sleep(grace)
		_, _ = fmt.Fprintln(os.Stderr, "error: interrupted")
		os.Exit(1)
	})
	os.Exit(cli.Run(ctx, version.Get().Version, os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
}
