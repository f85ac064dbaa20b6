//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/e2e/kubectl"
)

// scaledToZeroFunctions returns the functions of config/core that scale to zero.
func scaledToZeroFunctions() []string { return []string{"submit", "verdict", "report", "deadletter"} }

// functionSelector returns the label selector of a function's pods.
func functionSelector(function string) string { return "serving.knative.dev/service=" + function }

// zeroAndBack: the functions that ran before end without work, and the required ones run during a release.
func zeroAndBack(t *testing.T, e *environment) {
	awaitZero(t)
	n := e.optedInNamespace(t)
	n.create(t, builder.Deployment("web", 3, builder.Simulated))
	ran := map[string]bool{} // a function may end before another starts
	await(t, rolloutTimeout, "submit, verdict and report run", func(ctx context.Context) error {
		for _, function := range []string{"submit", "verdict", "report"} {
			printed, err := podsAsPrinted(ctx, function)
			if err != nil {
				return err
			}
			ran[function] = ran[function] || strings.Contains(printed, "Running")
			if !ran[function] {
				return fmt.Errorf("%s: %s", function, printed)
			}
		}
		return nil
	})
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	first := n.awaitBatch(t, shortTimeout, "web", 1, "is done", isDone)
	stored := first.Status.VerdictOf(v1alpha1.StagePre).Time
	t.Logf("from the creation of the first batch, with the functions at zero, to its stored PRE verdict: at most %s",
		stored.Sub(first.CreationTimestamp.Time).Round(10e6))
}

// awaitZero waits until `kubectl get pods` shows no pod of
// scaledToZeroFunctions.
func awaitZero(t *testing.T) {
	t.Helper()
	await(t, recoveryTimeout, "the functions of config/core that scale to zero have no pods", func(ctx context.Context) error {
		for _, function := range scaledToZeroFunctions() {
			printed, err := podsAsPrinted(ctx, function)
			if err != nil {
				return err
			}
			if printed != "No resources found in "+system+" namespace." {
				return errors.New(printed)
			}
		}
		return nil
	})
}

// podsAsPrinted returns the output of `kubectl get pods` for a function.
func podsAsPrinted(ctx context.Context, function string) (string, error) {
	r, err := kubectl.Kubectl{}.Run(ctx, "get", "pods", "-n", system, "-l", functionSelector(function))
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(r.Stdout + r.Stderr), nil
}
