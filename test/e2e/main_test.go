//go:build e2e

package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/e2e/serverdouble"
	"github.com/breakwater-dev/breakwater/test/networkpolicy"
)

// parallelSpecs is the number of specs that run at once. Specs mostly wait, so it exceeds the
// two cores of a small machine.
const parallelSpecs = 8

func TestMain(m *testing.M) {
	flag.Parse()
	// runInParallel limits the specs itself, because testing starts them in any order.
	_ = flag.Set("test.parallel", "1000") // the flag exists and accepts a number
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "prepare the cluster:", err)
		os.Exit(1)
	}
	os.Exit(run(m))
}

// run runs the tests while the NetworkPolicies are enforced.
func run(m *testing.M) int {
	e, err := connect()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return networkpolicy.Run(m, e.kube)
}

// prepare checks that Breakwater is installed, and cleans up after an
// interrupted run.
func prepare() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	e, err := connect()
	if err != nil {
		return err
	}
	deployments, err := e.kube.AppsV1().Deployments(v1alpha1.SystemNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(deployments.Items) == 0 {
		return fmt.Errorf("no Deployment of Breakwater in namespace %s: run `make up`", v1alpha1.SystemNamespace)
	}
	if err := serverdouble.Unconfigure(ctx, e.kube); err != nil {
		return err
	}
	return e.sweep(ctx)
}
