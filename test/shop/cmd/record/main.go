// SPDX-License-Identifier: Apache-2.0

// Record makes a recording of releases of the shop. It takes about 10 minutes
// and less than one CPU.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/breakwater-dev/breakwater/test/shop/record"
)

func main() {
	o := record.Options{Log: os.Stderr}
	flag.StringVar(&o.Run, "run", "a", "name of the run, a part of the namespaces")
	flag.IntVar(&o.Half, "half", 0, "which half of the combinations of kind and strength: 0 or 1")
	flag.Uint64Var(&o.Seed, "seed", 1, "seed of the plan and the load")
	flag.StringVar(&o.Out, "out", "", "folder of the result")
	flag.IntVar(&o.Only, "only", 0, "number of releases; 0 for all of the plan")
	flag.DurationVar(&o.Before, "before", 150*time.Second, "time that is recorded before each release")
	flag.DurationVar(&o.After, "after", 330*time.Second, "time that is recorded after each release")
	flag.Parse()
	if o.Out == "" || o.Half < 0 || o.Half > 1 {
		fmt.Fprintln(os.Stderr, "record: --out names a folder, --half is 0 or 1")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := record.Run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}
