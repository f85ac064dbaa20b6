// The permission centre keeps what may be granted to pods, has it granted by
// providers, and takes it back. README.md beside this file lists what it needs.
// With the word export it writes all that its store keeps to standard output,
// with import it reads that into a new store from standard input.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/breakwater-dev/breakwater/permission/centre"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "permissioncentre:", err)
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
		return fmt.Errorf("%q is neither export nor import; without a word it serves", args)
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: config.LogLevel}))
	c, err := centre.New(ctx, config, log)
	if err != nil {
		return err
	}
	return c.Run(ctx)
}
