//go:build controlplane

package change

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

func TestAnUnjudgedRolloutIsNotHeldInShadowModeOrWithoutBlocking(t *testing.T) {
	for name, set := range map[string]func(fixture, *testing.T){
		"in shadow mode":   func(f fixture, t *testing.T) { f.SetConfig(t, v1alpha1.ConfigShadow, "") },
		"without blocking": fixture.turnBlockingOff,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			set(f, t)
			f.holdUnjudged(t) // the controller sees it after the setting above
			w := f.create(t, workload.Deployment, builder.Deployment("web", replicas, builder.Simulated, builder.Paced(2)))
			w.passAll(t, 1)

			live, err := w.get(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w.mustPatch(t, releaseOf("v2"))
			w.checkRolloutNotHeld(t, live.ResourceVersion, "v2")
			w.awaitReportedUnjudged(t, 2)
			w.passAll(t, 2)
		})
	}
}

// turnBlockingOff changes the setting that the controller creates by default.
func (f fixture) turnBlockingOff(t *testing.T) {
	t.Helper()
	await(t, "isBlockingUp is off", func(ctx context.Context) error { return f.changeConfig(ctx, "blocking", `{"enable":false}`) })
	t.Cleanup(func() {
		if err := f.changeConfig(context.Background(), "blocking", `{"enable":true}`); err != nil {
			t.Error(err)
		}
	})
}

// checkRolloutNotHeld follows the workload from a resource version until its rollout is
// complete, and fails if it is held in between.
func (w target) checkRolloutNotHeld(t *testing.T, from, marker string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	changes, err := w.Dynamic.Resource(w.kind.GroupVersionResource()).Namespace(w.namespace).
		Watch(ctx, metav1.ListOptions{ResourceVersion: from})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	for e := range changes.ResultChan() {
		u, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			t.Fatalf("watch %s web: %v", w.kind.Kind, e.Object)
		}
		live, err := workload.FromUnstructured(w.kind, u)
		if err != nil {
			t.Fatal(err)
		}
		if live.PausedOrHeld() || live.Annotations[v1alpha1.HoldAnnotation] != "" || live.Labels[v1alpha1.SuspendLabel] != "" {
			t.Fatalf("%s web is held: paused %t, labels %v, annotations %v", w.kind.Kind, live.PausedOrHeld(), live.Labels, live.Annotations)
		}
		if live.Complete && live.Template.Annotations[builder.Marker] == marker {
			return
		}
	}
	t.Fatalf("the rollout of %s is not complete within %s", marker, timeout)
}

// awaitReportedUnjudged waits until the release of a complete rollout waits for verdicts and
// reports this, and fails unless it is not held.
func (w target) awaitReportedUnjudged(t *testing.T, attempt int64) {
	t.Helper()
	awaitShort(t, fmt.Sprintf("attempt %d waits for verdicts", attempt), func(ctx context.Context) error {
		c, err := w.release(ctx)
		if err != nil {
			return err
		}
		succeeded, judged, held := c.Status.GetCondition(apis.ConditionSucceeded),
			c.Status.GetCondition(v1alpha1.ReleaseJudged), c.Status.GetCondition(v1alpha1.ReleaseHeld)
		if held.IsTrue() {
			t.Fatalf("condition Held is %+v", held)
		}
		if c.Spec.Attempt != attempt || c.Status.Counts.Checking != replicas || !held.IsFalse() ||
			!succeeded.IsUnknown() || succeeded.Reason != v1alpha1.ReasonHeldUnjudged ||
			!judged.IsFalse() || judged.Reason != v1alpha1.ReasonHeldUnjudged {
			return fmt.Errorf("attempt %d, counts %+v, Succeeded is %+v, Judged is %+v, Held is %+v", c.Spec.Attempt, c.Status.Counts, succeeded, judged, held)
		}
		batches, err := w.batches(ctx, c)
		if err != nil {
			return err
		}
		for i := range batches {
			err = errors.Join(err, w.hasEvent(ctx, &batches[i], "no-verdict is Hold"))
		}
		return err
	})
}

// hasEvent returns an error unless a batch has an Event with the text.
func (w target) hasEvent(ctx context.Context, p *v1alpha1.ChangePod, text string) error {
	list, err := w.Kube.CoreV1().Events(w.namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(p.UID)).String(),
	})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if strings.Contains(list.Items[i].Message, text) {
			return nil
		}
	}
	return fmt.Errorf("%s has no Event with %q", p.Name, text)
}
