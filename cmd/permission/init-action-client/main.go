// The init-action-client is the init container of pods that need permissions:
// it calls the init-action-server, waits and exits. Package protocol documents its
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

// terminationMessage is the path of the termination message, which kubectl describe
// shows. The kubelet cuts it at 4096 bytes.
const terminationMessage = "/dev/termination-log"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	result := run(ctx)
	stop()
	fmt.Println(result.Message)
	// The file exists only in a pod.
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
