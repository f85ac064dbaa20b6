//go:build bench

package perf

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

const (
	// coldStarts is the number of releases that begin with the functions at zero.
	coldStarts = 3
	// atZero selects the pods of the functions that have none without work.
	atZero = functionLabel + " in (submit, verdict, report, deadletter)"
)

// TestFromZero measures a release of one pod that begins while the functions have no pods.
func TestFromZero(t *testing.T) {
	b, ctx := newBenchmark(t)
	m := fromZero{Machine: machine()}
	b.installServerDouble(ctx, t)
	const namespace = "bench-zero"
	if err := b.namespace(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	if err := b.deploy(ctx, namespace, 1, withBenchLabel); err != nil {
		t.Fatal(err)
	}
	if err := b.optIn(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	for range coldStarts {
		m.Starts = append(m.Starts, b.startFromZero(ctx, t, namespace))
	}
	b.keep(t, sectionZero, m.markdown(), m.figures())
}

// startFromZero waits until the functions are at zero, and measures a release.
func (b *benchmark) startFromZero(ctx context.Context, t *testing.T, namespace string) coldStart {
	t.Helper()
	pods := b.kube.CoreV1().Pods(v1alpha1.SystemNamespace)
	if err := b.await(ctx, "the functions are at zero", func(ctx context.Context) (bool, error) {
		left, err := pods.List(ctx, metav1.ListOptions{LabelSelector: atZero})
		return err == nil && len(left.Items) == 0, err
	}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	j, functions := b.observeJudging(ctx, t), &readyFunctions{first: map[string]time.Time{}}
	follow(ctx, t, atZero, pods.List, pods.Watch, functions.see)
	began := time.Now()
	if err := b.begin(ctx, namespace, name); err != nil {
		t.Fatal(err)
	}
	if err := b.awaitReleases(ctx, j, 1); err != nil {
		t.Fatal(err)
	}
	if unjudged := j.ended()[0].Unjudged; unjudged > 0 {
		t.Fatal("the pod is unjudged: the measurement is invalid")
	}
	if err := b.await(ctx, "the watch shows the verdict", func(context.Context) (bool, error) { return len(j.judged()) == 1, nil }); err != nil {
		t.Fatal(err)
	}
	c := newColdStart(began, j.judged()[0], functions.times())
	t.Logf("%+v", c)
	return c
}
