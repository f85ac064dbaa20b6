// Command judge judges released pods by their metrics.
//
//	judge replay     judges a past release
//	judge calibrate  judges labelled past releases and counts the errors
//	judge explain    recomputes a verdict from its record and the metrics
//	judge serve      is function judge, which judges running releases
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/breakwater-dev/breakwater/internal/version"
)

// Exit codes. exitError is any error, such as wrong flags or files.
const (
	exitPass      = 0
	exitFail      = 1
	exitNoVerdict = 2
	exitError     = 3
)

const usage = `usage: judge <command> [flags]

  replay     judge a past release: exits 0 pass, 1 fail, 2 no verdict, 3 wrong flags or files
  calibrate  judge labelled past releases and print how often the judge is right
  explain    recompute a verdict from its record and the metrics: exits 0 if it agrees, 1 if not
  serve      run function judge, as config/judge does

judge <command> -h lists the flags.
`

func main() {
	version.ExitIfAsked()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// command runs a subcommand and returns its exit code.
type command func(ctx context.Context, args []string, out, errs io.Writer) (int, error)

var commands = map[string]command{"replay": replay, "calibrate": calibrateCommand, "explain": explain, "serve": serve}

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	if len(args) == 0 || commands[args[0]] == nil {
		_, _ = fmt.Fprint(errs, usage)
		return exitError
	}
	code, err := commands[args[0]](ctx, args[1:], out, errs)
	if errors.Is(err, flag.ErrHelp) {
		return exitPass
	}
	if err != nil {
		_, _ = fmt.Fprintf(errs, "judge %s: %v\n", args[0], err)
		return exitError
	}
	return code
}
