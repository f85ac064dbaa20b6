// The init-action-client is the init container of pods that need permissions:
// it asks the init-action-server, waits, and ends. Package initaction says what
// it reads and what its exit codes mean.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/breakwater-dev/breakwater/permission/initaction"
)

// terminationMessage is shown by kubectl describe; what is longer than 4096
// bytes is cut by the kubelet.
const terminationMessage = "/dev/termination-log"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	result := run(ctx)
	stop()
	fmt.Println(result.Words)
	// Outside of a pod there is no such file, and nobody to read it.
	_ = os.WriteFile(terminationMessage, []byte(result.Words), 0o644)
	os.Exit(result.Code)
}

func run(ctx context.Context) initaction.Result {
	config, err := initaction.Read(os.Getenv)
	if err != nil {
		return initaction.Result{Code: initaction.ExitUsage, Words: err.Error()}
	}
	return initaction.New(config, os.Stdout).Run(ctx)
}
