// Command demo shows a judged release and a pod that waits for its permissions,
// on a cluster with Breakwater, as `make demo` starts it. It prints every
// command and its output. It exits with 0 only if every step had the expected
// result. Run it from the top of the repository.
//
// It can be interrupted at any time; each run starts from the beginning.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/breakwater-dev/breakwater/test/e2e/judge"
)

func main() {
	fast := flag.Bool("fast", false, "do not pause between the steps")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, newPrinter(os.Stdout, *fast))
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

// run connects to the cluster, runs the steps and removes the server
// configuration at the end.
func run(ctx context.Context, p *printer) (err error) {
	kube, err := connect()
	if err != nil {
		return err
	}
	defer func() {
		// Remove the configuration even if the context has ended.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
		defer cancel()
		err = errors.Join(err, judge.Unconfigure(last, kube))
	}()
	return (&steps{printer: p, kube: kube, judge: judge.New(nil)}).run(ctx)
}

func connect() (kubernetes.Interface, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	return kubernetes.NewForConfig(config)
}
