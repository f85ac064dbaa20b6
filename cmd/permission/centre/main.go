// Command centre runs the permission centre; README.md lists its environment
// and files. Argument export writes all tables of the store to standard output.
// Argument import reads an export from standard input into an empty store.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/breakwater-dev/breakwater/internal/version"
	"github.com/breakwater-dev/breakwater/permission/centre"
)

func main() {
	version.ExitIfAsked()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "centre:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	config, err := centre.ReadConfig()
	if err != nil {
		return err
	}
	switch {
	case len(args) == 1 && args[0] == "export":
		return centre.Export(ctx, config, os.Stdout)
	case len(args) == 1 && args[0] == "import":
		return centre.Import(ctx, config, os.Stdin)
	case len(args) > 0:
		return fmt.Errorf("invalid arguments %q: use export, import, or none to serve", args)
	}
	c, err := centre.New(ctx, config, centre.NewLog(os.Stderr, config.LogLevel))
	if err != nil {
		return err
	}
	return c.Run(ctx)
}
