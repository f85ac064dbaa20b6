//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// kindSpecs show that releases of every kind of workload are judged alike, by people.
func kindSpecs() []spec {
	specs := []spec{{"the partition set by a person on a StatefulSet is kept, and its release completes", canaryPartition}}
	for _, kind := range []workload.Kind{workload.StatefulSet, workload.DaemonSet, cloneSet} {
		specs = append(specs,
			spec{"the baseline of a " + kind.Kind + " is not judged, and its template is judged when applied again", baselineOfKind(kind)},
			spec{"a held " + kind.Kind + " replaces no pod, its releases are denied, and a repair restores its strategy", holdOfKind(kind)},
			spec{"the rollout of a " + kind.Kind + " continues when a person overrules the fail", overruledFail(kind)})
	}
	return specs
}

// readySeconds is the time in seconds that a pod of a rollout is Ready before
// the next pod is replaced.
const readySeconds = 5

// size is the number of pods of the workloads in these tests.
const size = 3

// testWorkload is the workload web of a namespace, of any kind.
type testWorkload struct {
	*namespace
	kind workload.Kind
}

// createWorkload creates the workload web of a kind.
func (n *namespace) createWorkload(t *testing.T, kind workload.Kind) testWorkload {
	t.Helper()
	w := testWorkload{n, kind}
	switch kind.Kind {
	case workload.StatefulSet.Kind:
		w.create(t, builder.StatefulSet("web", size, readySeconds))
	case workload.DaemonSet.Kind:
		w.create(t, builder.DaemonSet("web", n.simulatedNodes(t)[:size], readySeconds))
	case cloneSet.Kind:
		w.create(t, cloneSetObject(readySeconds))
	default:
		w.create(t, builder.Deployment("web", size, builder.Simulated, builder.Paced(readySeconds)))
	}
	return w
}

func (n *namespace) simulatedNodes(t *testing.T) []string {
	t.Helper()
	list, err := n.kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "type=kwok"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Labels[corev1.LabelHostname])
	}
	if len(names) < size {
		t.Fatalf("the cluster has %d simulated nodes, want %d", len(names), size)
	}
	return names
}

func (w testWorkload) create(t *testing.T, o runtime.Object) {
	t.Helper()
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		u = &unstructured.Unstructured{}
		if err := scheme.Scheme.Convert(o, u, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.dynamic.Resource(w.kind.GroupVersionResource()).Namespace(w.name).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create %s: %v", w.kind.Kind, err)
	}
}

// get returns the workload, parsed and as an object.
func (w testWorkload) get(ctx context.Context) (*workload.Workload, *unstructured.Unstructured, error) {
	u, err := w.dynamic.Resource(w.kind.GroupVersionResource()).Namespace(w.name).Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	read, err := workload.FromUnstructured(w.kind, u)
	return read, u, err
}

func (w testWorkload) patch(ctx context.Context, body string) error {
	_, err := w.dynamic.Resource(w.kind.GroupVersionResource()).Namespace(w.name).Patch(ctx, "web",
		types.MergePatchType, []byte(body), metav1.PatchOptions{})
	return err
}

func (w testWorkload) mustPatch(t *testing.T, body string) {
	t.Helper()
	if err := w.patch(t.Context(), body); err != nil {
		t.Fatalf("patch %s with %s: %v", w.kind.Kind, body, err)
	}
}

// awaitPhase waits until the current release has a phase.
func (w testWorkload) awaitPhase(t *testing.T, phase v1alpha1.ReleasePhase, attempt int64) *v1alpha1.ChangeWorkload {
	t.Helper()
	var found *v1alpha1.ChangeWorkload
	await(t, rolloutTimeout, fmt.Sprintf("attempt %d of %s is %s", attempt, w.kind.Kind, phase), func(ctx context.Context) error {
		live, _, err := w.get(ctx)
		if err != nil {
			return err
		}
		c, err := w.change.ChangeWorkloads(w.name).Get(ctx,
			v1alpha1.ChangeWorkloadName("web", live.Labels[v1alpha1.VersionKey]), metav1.GetOptions{})
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

// awaitFirstBatch waits for the first batch of a release.
func (w testWorkload) awaitFirstBatch(t *testing.T, attempt int64) *v1alpha1.ChangePod {
	t.Helper()
	var found *v1alpha1.ChangePod
	await(t, rolloutTimeout, fmt.Sprintf("a batch of attempt %d of %s", attempt, w.kind.Kind), func(ctx context.Context) error {
		live, _, err := w.get(ctx)
		if err != nil {
			return err
		}
		name := v1alpha1.ChangeWorkloadName("web", live.Labels[v1alpha1.VersionKey])
		c, err := w.change.ChangeWorkloads(w.name).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		batches, err := w.changePods(ctx, c)
		if err != nil || c.Spec.Attempt != attempt || len(batches) == 0 {
			return fmt.Errorf("attempt %d has %d batches, %w", c.Spec.Attempt, len(batches), err)
		}
		found = &batches[0]
		return nil
	})
	return found
}

// awaitWorkload waits until the workload fulfills a condition.
func (w testWorkload) awaitWorkload(t *testing.T, what string, holds func(*workload.Workload) bool) *workload.Workload {
	t.Helper()
	var found *workload.Workload
	await(t, shortTimeout, fmt.Sprintf("%s web %s", w.kind.Kind, what), func(ctx context.Context) error {
		live, _, err := w.get(ctx)
		if err != nil {
			return err
		}
		found = live
		if !holds(live) {
			return fmt.Errorf("labels %v, annotations %v, held by %v", live.Labels, live.Annotations, live.PauseValue)
		}
		return nil
	})
	return found
}

// judgedPods returns the number of pods in the batches of a release.
func (w testWorkload) judgedPods(t *testing.T, c *v1alpha1.ChangeWorkload) int {
	t.Helper()
	batches, err := w.changePods(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	uids := map[types.UID]bool{}
	for i := range batches {
		for _, p := range batches[i].Spec.PodInfos {
			uids[p.UID] = true
		}
	}
	return len(uids)
}

// strategy returns the fields of spec that control how pods are replaced.
func (w testWorkload) strategy(t *testing.T) any {
	t.Helper()
	_, u, err := w.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	return map[string]any{"strategy": spec["strategy"], "updateStrategy": spec["updateStrategy"], "paused": spec["paused"]}
}

// holdWorkload creates the workload web, waits until v1 succeeds, and fails the
// first pod of v2, so that web is held. No other pod is replaced before.
func (n *namespace) holdWorkload(t *testing.T, kind workload.Kind) (w testWorkload, before any) {
	t.Helper()
	w = n.createWorkload(t, kind)
	w.awaitPhase(t, v1alpha1.ReleaseSuccess, 1)
	before = w.strategy(t)
	n.keepPods(t)
	w.mustPatch(t, releaseOf("v2"))
	n.endDeletedPod(t)
	n.judgeByHand(t, w.awaitFirstBatch(t, 2), "unpass", "find error")
	w.awaitWorkload(t, "is held", func(live *workload.Workload) bool {
		return live.Labels[v1alpha1.SuspendLabel] != "" && live.PausedOrHeld()
	})
	n.endKeptPods(t.Context(), t)
	w.awaitPhase(t, v1alpha1.ReleaseSuspend, 2)
	return w, before
}

// isNotHeld reports whether a workload has neither suspension nor hold.
func isNotHeld(live *workload.Workload) bool {
	return live.Labels[v1alpha1.SuspendLabel] == "" && live.Annotations[v1alpha1.HoldAnnotation] == "" && !live.PausedOrHeld()
}

// baselineOfKind: the baseline is not judged. Its template is judged when it is
// applied again, although its revision is older than the opt-in and has no
// version.
func baselineOfKind(kind workload.Kind) func(*testing.T, *environment) {
	return func(t *testing.T, e *environment) {
		n := e.notOptedInNamespace(t)
		w := n.createWorkload(t, kind)
		await(t, rolloutTimeout, "the rollout is complete", func(ctx context.Context) error {
			live, _, err := w.get(ctx)
			if err == nil && !live.Complete {
				err = errors.New("the rollout is not complete")
			}
			return err
		})
		n.run(t, "label", "namespace", n.name, v1alpha1.NamespaceLabel+"="+v1alpha1.NamespaceEnabled)
		if got := w.judgedPods(t, w.awaitPhase(t, v1alpha1.ReleaseSuccess, 0)); got != 0 {
			t.Errorf("%d judged pods of the baseline, want 0", got)
		}
		w.mustPatch(t, releaseOf("v2"))
		w.awaitPhase(t, v1alpha1.ReleaseSuccess, 1)
		w.mustPatch(t, releaseOf("v1"))
		if got := w.judgedPods(t, w.awaitPhase(t, v1alpha1.ReleaseSuccess, 2)); got < size {
			t.Errorf("%d judged pods of the template that was applied again, want %d", got, size)
		}
	}
}

// holdOfKind: a hold stops the replacement of pods, releases are denied, and a
// repair restores the strategy exactly.
func holdOfKind(kind workload.Kind) func(*testing.T, *environment) {
	return func(t *testing.T, e *environment) {
		n := e.optedInNamespace(t)
		w, before := n.holdWorkload(t, kind)
		text := kind.LowerKind() + " web is suspended"
		for _, body := range []string{releaseOf("v3"), `{"metadata":{"labels":{"` + v1alpha1.SuspendLabel + `":null}}}`} {
			if err := w.patch(t.Context(), body); err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("patch %s: error is %v, want %q", body, err, text)
			}
		}
		w.awaitHoldObserved(t)
		n.checkNoPodReplaced(t, "the pods of a held rollout", readySeconds)
		w.mustPatch(t, repairOf("v3"))
		w.awaitPhase(t, v1alpha1.ReleaseSuccess, 3)
		w.awaitWorkload(t, "is not suspended", isNotHeld)
		if diff := cmp.Diff(before, w.strategy(t)); diff != "" {
			t.Errorf("the strategy changed (-before +after):\n%s", diff)
		}
	}
}

// awaitHoldObserved waits until the workload's controller has observed the
// hold, and all pods are Ready.
func (w testWorkload) awaitHoldObserved(t *testing.T) {
	t.Helper()
	await(t, rolloutTimeout, w.kind.Kind+" web has observed its hold", func(ctx context.Context) error {
		_, u, err := w.get(ctx)
		if err != nil {
			return err
		}
		observed, _, err := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
		if err != nil || observed < u.GetGeneration() {
			return fmt.Errorf("generation %d of %d is observed (%w)", observed, u.GetGeneration(), err)
		}
		list, err := w.kube.CoreV1().Pods(w.name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		ready := 0
		for i := range list.Items {
			if _, ok := workload.PodReadySince(&list.Items[i]); ok && list.Items[i].DeletionTimestamp == nil {
				ready++
			}
		}
		if ready != size || len(list.Items) != size {
			return fmt.Errorf("%d of %d pods are Ready, want %d", ready, len(list.Items), size)
		}
		return nil
	})
}

// checkNoPodReplaced fails when a pod of the namespace is replaced within twice
// the pace in seconds, the time in which a running rollout would replace a pod.
func (n *namespace) checkNoPodReplaced(t *testing.T, what string, pace int) {
	t.Helper()
	before := n.restartCounts(t)
	err := wait.PollUntilContextTimeout(t.Context(), pollInterval, time.Duration(2*pace)*time.Second, true, func(context.Context) (bool, error) {
		if diff := cmp.Diff(before, n.restartCounts(t)); diff != "" {
			return false, fmt.Errorf("%s change (-before +after):\n%s", what, diff)
		}
		return false, nil
	})
	if !wait.Interrupted(err) {
		t.Error(err)
	}
}

// overruledFail: the rollout continues when a person overrules the fail.
func overruledFail(kind workload.Kind) func(*testing.T, *environment) {
	return func(t *testing.T, e *environment) {
		n := e.optedInNamespace(t)
		w, before := n.holdWorkload(t, kind)
		n.judgeByHand(t, w.awaitFirstBatch(t, 2), "pass", "checked by hand")
		w.awaitPhase(t, v1alpha1.ReleaseSuccess, 2)
		w.awaitWorkload(t, "is not suspended", isNotHeld)
		if diff := cmp.Diff(before, w.strategy(t)); diff != "" {
			t.Errorf("the strategy changed (-before +after):\n%s", diff)
		}
	}
}

// canaryPartition is a partition that a person set: the end of a hold restores
// it, and the release continues to the last pod.
func canaryPartition(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	w := n.createWorkload(t, workload.StatefulSet)
	w.awaitPhase(t, v1alpha1.ReleaseSuccess, 1)
	w.mustPatch(t, `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}}}}`)
	w.mustPatch(t, releaseOf("v2"))
	first := w.awaitFirstBatch(t, 2)
	await(t, shortTimeout, "the canary has passed", func(ctx context.Context) error {
		p, err := n.change.ChangePods(n.name).Get(ctx, first.Name, metav1.GetOptions{})
		if err == nil && !isDone(p) {
			err = fmt.Errorf("phase is %q", p.Status.Phase)
		}
		return err
	})
	n.checkNoPodReplaced(t, "the pods behind the partition", readySeconds)
	n.judgeByHand(t, first, "unpass", "find error")
	w.awaitWorkload(t, "is held", func(live *workload.Workload) bool { return live.PausedOrHeld() })
	n.judgeByHand(t, first, "pass", "checked by hand")
	w.awaitWorkload(t, "has its partition restored", func(live *workload.Workload) bool { return live.PauseValue == int64(2) })
	w.mustPatch(t, `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`)
	if got := w.judgedPods(t, w.awaitPhase(t, v1alpha1.ReleaseSuccess, 2)); got < size {
		t.Errorf("%d judged pods, want %d", got, size)
	}
}
