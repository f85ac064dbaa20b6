// Command demo tells the story of a guarded release, and of a pod that waits
// for its permissions, on a cluster that has Breakwater installed, as `make
// demo` brings it up. It shows every command that it runs and what came back,
// and ends with exit code 0 only if everything came as it says. Run it from the
// top of the repository.
//
// It may be interrupted at any point, and begins anew each time.
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
	err := tell(ctx, newTeller(os.Stdout, *fast))
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case interrupted:
		fmt.Fprintln(os.Stderr, "\ninterrupted; nothing is broken: `make demo` begins anew, `make down` removes the cluster")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "\nthe demo did not go as it should:", err)
		os.Exit(1)
	}
}

// tell connects, tells the story, and in the end has no server configured, as
// it was before.
func tell(ctx context.Context, t *teller) (err error) {
	kube, err := connect()
	if err != nil {
		return err
	}
	defer func() {
		// The context may have ended; what was configured has to go all the same.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
		defer cancel()
		err = errors.Join(err, judge.Unconfigure(last, kube))
	}()
	return (&story{teller: t, kube: kube, judge: judge.New(nil)}).tell(ctx)
}

func connect() (kubernetes.Interface, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	return kubernetes.NewForConfig(config)
}
