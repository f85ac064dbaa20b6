//go:build controlplane

package change

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/e2e/clients"
	runner "github.com/breakwater-dev/breakwater/test/e2e/kubectl"
	"github.com/breakwater-dev/breakwater/test/e2e/testnamespace"
	"github.com/breakwater-dev/breakwater/test/poll"
)

// timeout bounds the time until a state is reached: a rollout of a few pods.
const timeout = 2 * time.Minute

// interval is the first interval of checks.
const interval = 100 * time.Millisecond

// fixture is an opted-in namespace of a test.
type fixture struct {
	*clients.Clients
	namespace string
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	c := clients.Require(t)
	return fixture{c, testnamespace.OptedIn(t, c.Kube, "change-")}
}

// kubectl runs kubectl with the manifest as its input.
var kubectl = runner.Kubectl{}.Require

// await waits until the condition returns no error.
func await(t *testing.T, what string, condition func(ctx context.Context) error) {
	t.Helper()
	poll.Require(t, interval, timeout, what, condition)
}

// awaitShort is await for a state that may be short.
func awaitShort(t *testing.T, what string, condition func(ctx context.Context) error) {
	t.Helper()
	poll.RequireSteady(t, interval, timeout, what, condition)
}

// target is a workload of a namespace.
type target struct {
	fixture
	kind workload.Kind
	name string
}

// create creates a workload from an object that is marshalled to JSON.
func (f fixture) create(t *testing.T, kind workload.Kind, o any) target {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		t.Fatal(err)
	}
	object["apiVersion"], object["kind"] = kind.GroupVersion().String(), kind.Kind
	created, err := f.Dynamic.Resource(kind.GroupVersionResource()).Namespace(f.namespace).
		Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create %s: %v", kind.Kind, err)
	}
	return target{f, kind, created.GetName()}
}

// createHeld creates a Deployment with a saved version, of which the second attempt is held.
func (f fixture) createHeld(t *testing.T) target {
	t.Helper()
	w := f.create(t, workload.Deployment, builder.Deployment("web", replicas, builder.Simulated, builder.Paced(1)))
	w.awaitSaved(t, 1)
	w.mustPatch(t, standingReleaseOf("v2"))
	w.judge(t, w.awaitBatch(t, 2), "unpass")
	w.awaitHeld(t)
	w.awaitPhase(t, v1alpha1.ReleaseSuspend, 2)
	w.mustPatch(t, `{"spec":{"minReadySeconds":1}}`)
	return w
}

func (w target) live(ctx context.Context) (*unstructured.Unstructured, error) {
	return w.Dynamic.Resource(w.kind.GroupVersionResource()).Namespace(w.namespace).Get(ctx, w.name, metav1.GetOptions{})
}

func (w target) get(ctx context.Context) (*workload.Workload, error) {
	u, err := w.live(ctx)
	if err != nil {
		return nil, err
	}
	return workload.FromUnstructured(w.kind, u)
}

// state returns, for an error message, what the status of the workload depends on: the
// object without its template.
func (w target) state(ctx context.Context) string {
	u, err := w.live(ctx)
	if err != nil {
		return err.Error()
	}
	unstructured.RemoveNestedField(u.Object, "spec", "template")
	unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	raw, err := u.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// patch changes the workload as a person does.
func (w target) patch(ctx context.Context, body string) error {
	_, err := w.Dynamic.Resource(w.kind.GroupVersionResource()).Namespace(w.namespace).
		Patch(ctx, w.name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	return err
}

func (w target) mustPatch(t *testing.T, body string) {
	t.Helper()
	if err := w.patch(t.Context(), body); err != nil {
		t.Fatalf("patch %s with %s: %v", w.kind.Kind, body, err)
	}
}

func releaseOf(marker string) string {
	return fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, builder.Marker, marker)
}

// standing is a minReadySeconds with which the rollout of a Deployment with builder.Paced stays at its first
// pod, so that it cannot end before it is held. It is below the default progressDeadlineSeconds.
const standing = 300

// standingReleaseOf is releaseOf for a rollout that stays at its first pod.
func standingReleaseOf(marker string) string {
	return fmt.Sprintf(`{"spec":{"minReadySeconds":%d,"template":{"metadata":{"annotations":{%q:%q}}}}}`, standing, builder.Marker, marker)
}

func repairOf(marker string) string {
	return fmt.Sprintf(`{"metadata":{"labels":{%q:"true"}},"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`,
		v1alpha1.IgnoredSuspendLabel, builder.Marker, marker)
}

// release returns the ChangeWorkload of the current release.
func (w target) release(ctx context.Context) (*v1alpha1.ChangeWorkload, error) {
	live, err := w.get(ctx)
	if err != nil {
		return nil, err
	}
	return w.Breakwater.AppV1alpha1().ChangeWorkloads(w.namespace).
		Get(ctx, v1alpha1.ChangeWorkloadName(w.name, live.Labels[v1alpha1.VersionKey]), metav1.GetOptions{})
}

// awaitPhase waits until the current release is the attempt and has the phase.
func (w target) awaitPhase(t *testing.T, phase v1alpha1.ReleasePhase, attempt int64) *v1alpha1.ChangeWorkload {
	t.Helper()
	var found *v1alpha1.ChangeWorkload
	await(t, fmt.Sprintf("attempt %d of %s %s is %s", attempt, w.kind.Kind, w.name, phase), func(ctx context.Context) error {
		c, err := w.release(ctx)
		if err != nil {
			return err
		}
		found = c
		if c.Status.Phase != phase || c.Spec.Attempt != attempt {
			return fmt.Errorf("attempt %d is %q: %+v", c.Spec.Attempt, c.Status.Phase, c.Status.Counts)
		}
		return nil
	})
	return found
}

// awaitSaved waits until the current release is the attempt, has succeeded and its template
// is saved. The template of a version that is replaced earlier is not saved.
func (w target) awaitSaved(t *testing.T, attempt int64) *v1alpha1.ChangeWorkload {
	t.Helper()
	w.awaitPhase(t, v1alpha1.ReleaseSuccess, attempt)
	var found *v1alpha1.ChangeWorkload
	await(t, fmt.Sprintf("the template of attempt %d of %s is saved", attempt, w.name), func(ctx context.Context) error {
		c, err := w.release(ctx)
		if err == nil && c.Status.SavedTemplateName == "" {
			err = fmt.Errorf("%s has no saved template", c.Name)
		}
		found = c
		return err
	})
	return found
}

// awaitBatch waits for the first batch of an attempt. A rollout may be complete soon after it.
func (w target) awaitBatch(t *testing.T, attempt int64) *v1alpha1.ChangePod {
	t.Helper()
	var found *v1alpha1.ChangePod
	awaitShort(t, fmt.Sprintf("attempt %d of %s %s has a batch", attempt, w.kind.Kind, w.name), func(ctx context.Context) error {
		c, err := w.release(ctx)
		if err != nil {
			return err
		}
		batches, err := w.batches(ctx, c)
		if err != nil || c.Spec.Attempt != attempt || len(batches) == 0 {
			return fmt.Errorf("attempt %d has %d batches, %w", c.Spec.Attempt, len(batches), err)
		}
		found = &batches[0]
		return nil
	})
	return found
}

// batches returns the ChangePods of a release.
func (w target) batches(ctx context.Context, c *v1alpha1.ChangeWorkload) ([]v1alpha1.ChangePod, error) {
	list, err := w.Breakwater.AppV1alpha1().ChangePods(w.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(p v1alpha1.ChangePod) bool { return !metav1.IsControlledBy(&p, c) }), nil
}

// judge records a person's verdict on a batch.
func (w target) judge(t *testing.T, p *v1alpha1.ChangePod, verdict string) {
	t.Helper()
	results := slices.Clone(p.Spec.PodInfos)
	for i := range results {
		results[i].Verdict, results[i].Message = verdict, "find error"
	}
	raw, err := json.Marshal(map[string]any{"status": map[string]any{"podResults": results, "message": "PostFinish"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Breakwater.AppV1alpha1().ChangePods(w.namespace).
		Patch(t.Context(), p.Name, types.MergePatchType, raw, metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatalf("judge %s: %v", p.Name, err)
	}
}

// awaitHeld waits until the workload is suspended and held, awaitResumed until it is neither.
func (w target) awaitHeld(t *testing.T) {
	t.Helper()
	w.awaitWorkload(t, "is held", func(live *workload.Workload) bool {
		return live.Labels[v1alpha1.SuspendLabel] != "" && live.PausedOrHeld()
	})
}

func (w target) awaitResumed(t *testing.T) {
	t.Helper()
	w.awaitWorkload(t, "is not held", func(live *workload.Workload) bool {
		return live.Labels[v1alpha1.SuspendLabel] == "" && live.Annotations[v1alpha1.HoldAnnotation] == "" && !live.PausedOrHeld()
	})
}

func (w target) awaitWorkload(t *testing.T, what string, holds func(*workload.Workload) bool) {
	t.Helper()
	await(t, fmt.Sprintf("%s %s %s", w.kind.Kind, w.name, what), func(ctx context.Context) error {
		live, err := w.get(ctx)
		if err == nil && !holds(live) {
			err = fmt.Errorf("labels %v, annotations %v, held by %v", live.Labels, live.Annotations, live.PauseValue)
		}
		return err
	})
}

func (w target) pods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := w.Kube.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// updatedPods returns the number of pods with a marker.
func (w target) updatedPods(t *testing.T, marker string) int {
	t.Helper()
	pods, err := w.pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range pods {
		if pods[i].Annotations[builder.Marker] == marker {
			n++
		}
	}
	return n
}
