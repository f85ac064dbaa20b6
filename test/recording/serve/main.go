// SPDX-License-Identifier: Apache-2.0

// Serve loads a run of the recorded releases into a Prometheus and prints its
// URL, until it is interrupted:
//
//	go run ./test/recording/serve tuning
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/breakwater-dev/breakwater/test/recording"
)

func main() {
	run := recording.Tuning
	if len(os.Args) == 2 {
		run = recording.Run(os.Args[1])
	}
	if len(os.Args) > 2 || !slices.Contains(recording.Runs, run) {
		fmt.Fprintln(os.Stderr, "serve: the only argument is tuning, tuning-b or test")
		os.Exit(2)
	}
	if err := serve(run); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

func serve(run recording.Run) error {
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	folder, err := os.MkdirTemp("", "recording-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	s, err := recording.Serve(context.WithoutCancel(interrupted), run, folder)
	if err != nil {
		return err
	}
	fmt.Println(s.URL)
	<-interrupted.Done()
	return s.Stop()
}
