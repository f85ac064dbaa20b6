// Command demo shows judged releases of a Deployment and of a Knative Service, protected pods and a
// pod that waits for its permissions, on a cluster with Breakwater, as `make demo` starts it. It prints every
// command and its output. It exits with 0 only if every step had the expected
// result. Run it from the top of the repository.
//
// It can be interrupted at any time; each run starts from the beginning.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/breakwater-dev/breakwater/test/e2e/serverdouble"
)

func main() {
	fast := flag.Bool("fast", false, "do not pause between the steps")
	chapter := flag.String("chapter", "", "show only these chapters, separated by spaces: "+chapterNames())
	record := flag.String("record", "", "also write the output to this file as an asciinema cast, and beside it as an animated SVG")
	check := flag.Bool("check", false, "only check the names of the chapters")
	flag.Parse()
	if *check {
		if _, err := selectChapters(*chapter); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *chapter, *record, *fast)
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case interrupted:
		fmt.Fprintln(os.Stderr, "\ninterrupted: run `make demo` to start again or `make down` to remove the cluster")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "\nthe demo failed:", err)
		os.Exit(1)
	}
}

// run connects to the cluster and shows the chapters.
func run(ctx context.Context, chapter, record string, fast bool) (err error) {
	selected, err := selectChapters(chapter)
	if err != nil {
		return err
	}
	kube, err := connect()
	if err != nil {
		return err
	}
	p := newPrinter(os.Stdout, fast)
	if record != "" {
		file, created := os.Create(record)
		if created != nil {
			return fmt.Errorf("create the recording: %w", created)
		}
		p = recordingPrinter(os.Stdout, newCast(file, time.Now), fast)
		defer func() {
			if err = errors.Join(err, file.Close()); err == nil {
				err = draw(record, pictureOf(record))
			}
		}()
	}
	return (&steps{printer: p, kube: kube, double: serverdouble.New(nil)}).run(ctx, selected)
}

// pictureOf returns the name of the picture of a recording.
func pictureOf(recording string) string { return strings.TrimSuffix(recording, ".cast") + ".svg" }

// draw makes a picture of a recording.
func draw(recording, to string) error {
	raw, err := os.ReadFile(recording)
	if err != nil {
		return err
	}
	header, events, err := readCast(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("%s: %w", recording, err)
	}
	var out bytes.Buffer
	if err := picture(&out, header, events); err != nil {
		return err
	}
	return os.WriteFile(to, out.Bytes(), 0o644)
}

func connect() (kubernetes.Interface, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	return kubernetes.NewForConfig(config)
}
