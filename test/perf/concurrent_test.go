//go:build bench

package perf

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/test/builder"
)

const (
	// concurrentPods is the number of pods of each release.
	concurrentPods = 20
	// concurrentNamespaces is the number of namespaces that share the releases.
	concurrentNamespaces = 10
	// releaseInterval is the time between the beginnings of two releases: 100 begin over five minutes.
	releaseInterval = 3 * time.Second
	// catchUpTimeout bounds the wait for watches; what they have not shown then counts as not judged.
	catchUpTimeout = time.Minute
)

// TestConcurrent measures many releases at the same time. An unjudged pod is a result; the test fails if a release
// does not end.
func TestConcurrent(t *testing.T) {
	b, ctx := newBenchmark(t)
	m := concurrent{Machine: machine(), Each: concurrentPods}
	b.installServerDouble(ctx, t)
	const warm = "bench-warm"
	if err := b.namespace(ctx, warm); err != nil {
		t.Fatal(err)
	}
	if err := b.deploy(ctx, warm, warmPods); err != nil {
		t.Fatal(err)
	}
	if err := b.optIn(ctx, warm); err != nil {
		t.Fatal(err)
	}
	deployments := b.deployMany(ctx, t)
	if err := b.measureIdleRate(ctx); err != nil {
		t.Fatal(err)
	}
	for _, interval := range []time.Duration{0, releaseInterval} {
		run := concurrentRun{Releases: len(deployments), Interval: interval}
		t.Run(run.begin(), func(t *testing.T) {
			var start concurrentRun // starts the functions
			if err := b.releaseAll(ctx, t, []types.NamespacedName{{Namespace: warm, Name: name}}, &start); err != nil {
				t.Fatal(err)
			}
			if err := b.releaseAll(ctx, t, deployments, &run); err != nil {
				t.Fatal(err)
			}
			m.Runs = append(m.Runs, run)
			t.Logf("%d judged, %d unjudged, all Success after %s, p99 %s", run.Judged, run.Unjudged, run.Took, quantile(run.Delays, 0.99))
		})
	}
	if t.Failed() {
		return // a section has all runs
	}
	b.keep(t, sectionConcurrent, m.markdown(), m.figures())
}

// deployMany creates the Deployments of the releases, opts their namespaces in, and waits for all baselines.
func (b *benchmark) deployMany(ctx context.Context, t *testing.T) (all []types.NamespacedName) {
	t.Helper()
	namespaces := make([]string, concurrentNamespaces)
	for i := range namespaces {
		namespaces[i] = fmt.Sprintf("bench-concurrent-%d", i)
		if err := b.namespace(ctx, namespaces[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range b.Releases {
		key := types.NamespacedName{Namespace: namespaces[i%len(namespaces)], Name: fmt.Sprintf("%s-%d", name, i)}
		d := builder.Deployment(key.Name, concurrentPods, builder.Simulated, withBenchLabel)
		if _, err := b.kube.AppsV1().Deployments(key.Namespace).Create(ctx, d, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		all = append(all, key)
	}
	if err := b.allComplete(ctx, metav1.NamespaceAll, benchLabel, len(all)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	baselines := b.observeJudging(ctx, t)
	for _, namespace := range namespaces {
		if err := b.setOptIn(ctx, namespace); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.awaitReleases(ctx, baselines, len(all)); err != nil {
		t.Fatal(err)
	}
	return all
}

// withBenchLabel sets benchLabel on a Deployment and its pods.
func withBenchLabel(d *appsv1.Deployment) {
	d.Labels[benchLabel], d.Spec.Template.Labels[benchLabel] = "true", "true"
}

// awaitReleases waits until that many new releases have ended. It fails if one is held.
func (b *benchmark) awaitReleases(ctx context.Context, j *judging, releases int) error {
	return b.await(ctx, fmt.Sprintf("%d releases are a Success", releases), func(context.Context) (bool, error) {
		ended := j.ended()
		for _, r := range ended {
			if r.NotSucceeded != "" {
				return false, fmt.Errorf("a release is %s", r.NotSucceeded)
			}
		}
		return len(ended) == releases, nil
	})
}

// releaseAll begins a release of each Deployment at the run's interval, and measures until all are a Success.
func (b *benchmark) releaseAll(ctx context.Context, t *testing.T, deployments []types.NamespacedName, run *concurrentRun) error {
	t.Helper()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	j := b.observeJudging(ctx, t)
	before, err := b.usage(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	for i, d := range deployments {
		time.Sleep(time.Until(began.Add(time.Duration(i) * run.Interval))) // the pace is the measurement
		if err := b.begin(ctx, d.Namespace, d.Name); err != nil {
			return err
		}
	}
	if err := b.awaitReleases(ctx, j, len(deployments)); err != nil {
		return err
	}
	after, err := b.usage(ctx)
	if err != nil {
		return err
	}
	run.CPU = spent(before, after)[machineComponent] - time.Duration(b.idleRate*float64(time.Since(began)))
	// The watches of pods and batches may be behind that of releases.
	caughtUp, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	err = b.await(caughtUp, "all verdicts are seen", func(context.Context) (bool, error) {
		unjudged := 0
		for _, r := range j.ended() {
			unjudged += r.Unjudged
		}
		return len(j.judged())+unjudged >= len(deployments)*concurrentPods, nil
	})
	if err != nil && ctx.Err() != nil {
		return err
	}
	run.observe(began, j.judged(), j.ended())
	return nil
}
