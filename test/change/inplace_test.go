//go:build controlplane

package change

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/controlplane"
)

// createInPlace creates a CloneSet whose pods keep their names and UIDs in a release, and
// returns it when its first release has succeeded and the pods are labeled as finished. The
// label stays when a pod is updated.
func (f fixture) createInPlace(t *testing.T) target {
	t.Helper()
	w := f.create(t, cloneSet, object(t, fmt.Sprintf(kruiseObject, "updateStrategy: {type: InPlaceIfPossible, maxUnavailable: 1}\n  minReadySeconds: 3")))
	w.awaitPhase(t, v1alpha1.ReleaseSuccess, 1)
	await(t, "the pods are labeled", func(ctx context.Context) error {
		pods, err := w.pods(ctx)
		for i := range pods {
			if pods[i].Labels[v1alpha1.FinishedLabel] != v1alpha1.FinishedValue {
				err = errors.Join(err, fmt.Errorf("pod %s is not labeled", pods[i].Name))
			}
		}
		return err
	})
	return w
}

// An OpenKruise update of the metadata alone restarts no container.
func TestACloneSetThatIsUpdatedInPlaceIsReleasedHeldRepairedAndRolledBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	user := f.useKruise(t)
	controlplane.RunKubelet(t, f.Kube, f.namespace)
	w := f.createInPlace(t)
	former := w.podUIDs(t)
	w.checkReleases(t, user)
	if diff := cmp.Diff(former, w.podUIDs(t)); diff != "" {
		t.Error("pods were not updated in place (-former +now):", diff)
	}
}

// The pod has the label of a finished pod from its former version, and its former batch.
func TestAPodThatIsUpdatedInPlaceIsJudgedWhenItRunsTheNewVersion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	user := f.useKruise(t)
	stopKubelet := controlplane.RunKubelet(t, f.Kube, f.namespace)
	w := f.createInPlace(t)
	former := w.podUIDs(t)

	stopKubelet()
	w.mustPatch(t, imageOf("v2", false))
	w.awaitUpdating(t, 2)
	controlplane.RunKubelet(t, f.Kube, f.namespace)
	w.judge(t, w.awaitBatch(t, 2), "unpass")
	w.awaitHeld(t)
	w.awaitPhase(t, v1alpha1.ReleaseSuspend, 2)
	if n := w.updatedPods(t, "v2"); n == 0 || n >= replicas {
		t.Errorf("%d pods of %d have the held version", n, replicas)
	}

	w.mustPatch(t, imageOf("v3", true)) // a repair
	w.checkComplete(t, "v3", 3)
	if diff := cmp.Diff(former, w.judgedPods(t)); diff != "" {
		t.Error("not every pod was updated in place and judged (-former +judged):", diff)
	}
	w.checkNotDenied(t, user)
	w.checkNeverDrifted(t)
}

// imageOf changes the image and the marker, which an update in place changes, too.
func imageOf(marker string, repair bool) string {
	labels := "{}"
	if repair {
		labels = fmt.Sprintf(`{%q:"true"}`, v1alpha1.IgnoredSuspendLabel)
	}
	return fmt.Sprintf(`{"metadata":{"labels":%s},"spec":{"template":{"metadata":{"annotations":{%q:%q}},"spec":{"containers":[
		{"name":"c","image":"busybox:%[3]s","resources":{"limits":{"cpu":"1000m","memory":"1024Mi"}}}]}}}}`, labels, builder.Marker, marker)
}

// podUIDs returns the UIDs of the pods by name.
func (w target) podUIDs(t *testing.T) map[string]types.UID {
	t.Helper()
	pods, err := w.pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	uids := map[string]types.UID{}
	for i := range pods {
		uids[pods[i].Name] = pods[i].UID
	}
	return uids
}

// judgedPods returns the UIDs of the pods in the batches of the current release by name.
func (w target) judgedPods(t *testing.T) map[string]types.UID {
	t.Helper()
	c, err := w.release(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	batches, err := w.batches(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	uids := map[string]types.UID{}
	for i := range batches {
		for _, p := range batches[i].Spec.PodInfos {
			uids[p.Pod] = p.UID
		}
	}
	return uids
}

// awaitUpdating waits until a release counts a pod that does not run its version yet, and
// fails if the pod is judged.
func (w target) awaitUpdating(t *testing.T, attempt int64) {
	t.Helper()
	awaitShort(t, fmt.Sprintf("attempt %d has a pod that is updated", attempt), func(ctx context.Context) error {
		c, err := w.release(ctx)
		if err != nil {
			return err
		}
		batches, err := w.batches(ctx, c)
		if err != nil {
			return err
		}
		if c.Spec.Attempt == attempt && len(batches) > 0 {
			t.Fatalf("%s judges %+v before it runs the version", batches[0].Name, batches[0].Spec.PodInfos)
		}
		if c.Spec.Attempt != attempt || c.Status.Counts.Preparing == 0 {
			return fmt.Errorf("attempt %d has %+v", c.Spec.Attempt, c.Status.Counts)
		}
		return nil
	})
}
