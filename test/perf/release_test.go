//go:build bench

package perf

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

// warmPods is the number of pods of the first release, which starts the
// functions, so that no cold start is measured.
const warmPods = 20

// TestReleases measures releases. It fails if a release does not end, but not
// because it is slow.
func TestReleases(t *testing.T) {
	b, ctx := newBenchmark(t)
	m := releases{Machine: machine(), Pods: b.Pods}
	b.installServerDouble(ctx, t)
	const bare, judged, warm = "bench-bare", "bench-judged", "bench-warm"
	for namespace, pods := range map[string]int{bare: b.Pods, judged: b.Pods, warm: warmPods} {
		if err := b.namespace(ctx, namespace); err != nil {
			t.Fatal(err)
		}
		if err := b.deploy(ctx, namespace, pods); err != nil {
			t.Fatal(err)
		}
	}
	for _, namespace := range []string{judged, warm} {
		if err := b.optIn(ctx, namespace); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.measureIdleRate(ctx); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		what      string
		namespace string
		batches   bool
		into      *rollout
	}{
		// The release one by one is the last: the next release would be measured together with the
		// deletion of its ChangePods.
		{"bare", bare, false, &m.Bare[0]},
		{"10 %", judged, true, &m.Batched},
		{"bare", bare, false, &m.Bare[1]},
		{"one by one", judged, false, &m.Single},
		{"bare", bare, false, &m.Bare[2]},
	} {
		if err := b.batches(ctx, step.batches); err != nil {
			t.Fatal(err)
		}
		if step.namespace == judged {
			if _, err := b.roll(ctx, warm, true); err != nil {
				t.Fatal(err)
			}
		}
		r, err := b.roll(ctx, step.namespace, step.namespace == judged)
		if err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		*step.into = r
		t.Logf("%s: rollout %s, Success %s after the last verdict", step.what, r.Took.Round(pollInterval), r.AfterVerdict.Round(time.Millisecond))
	}
	b.keep(t, sectionReleases, m.markdown(), m.figures())
}

// roll starts another rollout of a Deployment and measures it.
func (b *benchmark) roll(ctx context.Context, namespace string, judged bool) (rollout, error) {
	var r rollout
	since, err := auditSize(b.AuditLog)
	if err != nil {
		return r, err
	}
	sent, err := b.bytesWritten(ctx)
	if err != nil {
		return r, err
	}
	before, err := b.usage(ctx)
	if err != nil {
		return r, err
	}
	began := time.Now()
	if err := b.begin(ctx, namespace, name); err != nil {
		return r, err
	}
	if err := b.complete(ctx, namespace); err != nil {
		return r, err
	}
	r.Took = time.Since(began)
	complete, err := b.usage(ctx)
	if err != nil {
		return r, err
	}
	r.Rolling = spent(before, complete)
	var ready time.Time
	if judged {
		if ready, err = b.judged(ctx, namespace, &r); err != nil {
			return r, err
		}
	}
	after, err := b.usage(ctx)
	if err != nil {
		return r, err
	}
	r.CPU, r.RSS = spent(before, after), after["controller"].RSS
	if judged {
		if err := b.awaitLabels(ctx, namespace); err != nil {
			return r, err
		}
	}
	done, err := b.usage(ctx)
	if err != nil {
		return r, err
	}
	r.Machine = spent(before, done)[machineComponent] - time.Duration(b.idleRate*float64(time.Since(began)))
	now, err := b.bytesWritten(ctx)
	if err != nil {
		return r, err
	}
	r.Bytes = now - sent
	r.Requests, err = countRequests(b.AuditLog, since, account, namespace)
	if judged && err == nil {
		if r.total().Reads == 0 {
			return r, errors.New("the audit log has no read, because an older version started the cluster: run make down and make up")
		}
		// The labels are written while the pods are judged.
		last := r.Requests[call{"controller", "patch", "pods"}].Last
		if last.IsZero() {
			return r, errors.New("the audit log has no label of a pod")
		}
		r.Labeled = last.Sub(ready)
	}
	return r, err
}

// measureIdleRate measures the CPU that the idle machine uses, in cores. It is not part of
// the cost of a rollout.
func (b *benchmark) measureIdleRate(ctx context.Context) error {
	if err := b.awaitIdle(ctx); err != nil {
		return err
	}
	const span = 10 * time.Second
	before, err := machineCPU()
	if err != nil {
		return err
	}
	if err := elapse(ctx, span); err != nil {
		return err
	}
	after, err := machineCPU()
	b.idleRate = (after - before).Seconds() / span.Seconds()
	b.log("the idle machine uses %.2f cores", b.idleRate)
	return err
}

// judged waits for Success and measures it from the last Ready pod and from the
// last verdict. It returns the time at which the last pod was Ready.
func (b *benchmark) judged(ctx context.Context, namespace string, r *rollout) (ready time.Time, _ error) {
	var c *v1alpha1.ChangeWorkload
	err := b.await(ctx, "the release in "+namespace+" is a Success", func(ctx context.Context) (_ bool, err error) {
		c, err = b.release(ctx, namespace)
		if err != nil || c == nil {
			return false, err
		}
		if c.Status.Phase == v1alpha1.ReleaseSuspend || c.Status.Phase == v1alpha1.ReleaseFailed {
			return false, fmt.Errorf("it is %s: %+v", c.Status.Phase, c.Status.Conditions)
		}
		return c.Status.Phase == v1alpha1.ReleaseSuccess, nil
	})
	if err != nil {
		return ready, err
	}
	success := time.Now()
	if c.Status.Counts.Unjudged > 0 {
		return ready, fmt.Errorf("%d pods are unjudged: the measurement is invalid", c.Status.Counts.Unjudged)
	}
	pods, err := b.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return ready, err
	}
	var lastVerdict time.Time
	for i := range pods.Items {
		for _, cond := range pods.Items[i].Status.Conditions {
			if cond.Type == corev1.PodReady && cond.LastTransitionTime.After(ready) {
				ready = cond.LastTransitionTime.Time
			}
		}
	}
	log, _, err := b.double.OrderLog(ctx, c.Spec.OrderID)
	if err != nil {
		return ready, err
	}
	for _, sent := range log.Callbacks {
		if sent.Stage == double.Post && sent.Sent.After(lastVerdict) && sent.Sent.Before(success) {
			lastVerdict = sent.Sent
		}
	}
	r.AfterReady, r.AfterVerdict = success.Sub(ready), success.Sub(lastVerdict)
	return ready, nil
}

// awaitLabels waits until every pod has the label operate-finished.
func (b *benchmark) awaitLabels(ctx context.Context, namespace string) error {
	return b.await(ctx, "all pods in "+namespace+" are labeled as finished", func(ctx context.Context) (bool, error) {
		// The API server reads from its cache and sends only unlabeled pods.
		left, err := b.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "!" + v1alpha1.FinishedLabel, ResourceVersion: "0"})
		return err == nil && len(left.Items) == 0, err
	})
}
