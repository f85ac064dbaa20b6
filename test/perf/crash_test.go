//go:build bench

package perf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	policy "github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

const (
	// crashNamespaces is the number of namespaces that share the budgets.
	crashNamespaces = 10
	// maxCrashes is the number of pods that crash one after the other, and again at once.
	maxCrashes = 100
)

// TestCrash measures the time from the crash of a pod until its budget counts it as unavailable.
func TestCrash(t *testing.T) {
	b, ctx := newBenchmark(t)
	m := crashes{Machine: machine(), Budgets: b.Budgets}
	budgets := b.change.PolicyV1alpha1().PodUnavailableBudgets("")
	a := newAvailability()
	follow(ctx, t, "", budgets.List, budgets.Watch, a.see)
	var pods []types.NamespacedName
	for i := range crashNamespaces {
		namespace := fmt.Sprintf("bench-crash-%d", i)
		if err := b.namespace(ctx, namespace); err != nil {
			t.Fatal(err)
		}
		names, err := b.pods(ctx, namespace, b.Budgets/crashNamespaces)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			if err := b.budgetOf(ctx, namespace, n); err != nil {
				t.Fatal(err)
			}
			pods = append(pods, types.NamespacedName{Namespace: namespace, Name: n})
		}
	}
	if err := b.await(ctx, "all budgets are Guarding", func(context.Context) (bool, error) { return a.ready() == len(pods), nil }); err != nil {
		t.Fatal(err)
	}
	many := min(maxCrashes, len(pods)/2)
	for i := range many {
		answered, counted, err := b.crash(ctx, a, pods[i*len(pods)/many]) // pods of all namespaces
		if err != nil {
			t.Fatal(err)
		}
		m.OneByOne = append(m.OneByOne, max(0, counted.Sub(answered)))
	}
	counted, errs := make([]time.Time, many), make([]error, many)
	var wg sync.WaitGroup
	began := time.Now()
	for i := range many {
		wg.Go(func() { _, counted[i], errs[i] = b.crash(ctx, a, pods[i*len(pods)/many+1]) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	m.AtOnce = slices.MaxFunc(counted, time.Time.Compare).Sub(began)
	b.keep(t, sectionCrash, m.markdown(), m.figures())
}

// budgetOf creates a budget of one pod, which may be unavailable.
func (b *benchmark) budgetOf(ctx context.Context, namespace, pod string) error {
	_, err := b.change.PolicyV1alpha1().PodUnavailableBudgets(namespace).Create(ctx, &policy.PodUnavailableBudget{
		ObjectMeta: metav1.ObjectMeta{Name: pod},
		Spec: policy.PodUnavailableBudgetSpec{
			Selector: &policy.PodSelector{MatchLabels: map[string]string{podLabel: pod}}, MinAvailable: new(intstr.FromInt32(0)),
		},
	}, metav1.CreateOptions{})
	return err
}

// crash writes the status of a pod as the kubelet does when its container has ended. It returns the times of the API
// server's answer, and since when the budget of the same name counts the pod as unavailable.
func (b *benchmark) crash(ctx context.Context, a *availability, pod types.NamespacedName) (answered, counted time.Time, err error) {
	now := time.Now().UTC().Format(time.RFC3339)
	condition := func(kind string) string {
		return fmt.Sprintf(`{"type":%q,"status":"False","reason":"ContainersNotReady","lastTransitionTime":%q}`, kind, now)
	}
	patch := `{"status":{"conditions":[` + condition("Ready") + "," + condition("ContainersReady") + `]}}`
	_, err = b.kube.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	if err != nil {
		return answered, counted, err
	}
	answered = time.Now()
	err = b.await(ctx, "the budget counts "+pod.String()+" as unavailable", func(context.Context) (bool, error) {
		counted = a.since(pod)
		return !counted.IsZero(), nil
	})
	return answered, counted, err
}
