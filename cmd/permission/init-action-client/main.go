// The init-action-client is the init container of pods that need permissions:
// it asks the init-action-server, waits, and ends. Package protocol documents its
// environment variables and exit codes.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/breakwater-dev/breakwater/permission/initaction/client"
	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
)

// terminationMessage is shown by kubectl describe; what is longer than 4096
// bytes is cut by the kubelet.
const terminationMessage = "/dev/termination-log"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	result := run(ctx)
	stop()
	fmt.Println(result.Message)
	// Outside of a pod there is no such file, and nobody to read it.
	_ = os.WriteFile(terminationMessage, []byte(result.Message), 0o644)
	os.Exit(result.Code)
}

func run(ctx context.Context) client.Result {
	config, err := client.ReadConfig(os.Getenv)
	if err != nil {
		return client.Result{Code: protocol.ExitUsage, Message: err.Error()}
	}
	return client.New(config, os.Stdout).Run(ctx)
}
