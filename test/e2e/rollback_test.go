//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// selfHealingThreshold is longer than a pod on a busy machine needs to start, or to report why it
// does not.
const selfHealingThreshold = 30 * time.Second

// selfHealingTimeout bounds a self-healing: the threshold, two checks, and the
// time until the cluster reports that a pod does not start.
const selfHealingTimeout = selfHealingThreshold + time.Minute

// Rollbacks, automatic and manual; beside them the connections.
func TestRollback(t *testing.T) {
	e := newEnvironment(t)
	e.setConfig(t, v1alpha1.ConfigSelfHealing, selfHealingThreshold.String())
	// The first has no failed release, and the second saves fewer templates than the limit of the first.
	runInParallel(t, e, []spec{
		{"history-limit bounds the number of saved templates", historyLimit},
		{"a failed release is rolled back automatically when that is enabled, but a failed rollback is not", automaticRollback},
	})
	runInParallel(t, e, []spec{
		{"each component accepts only the connections that its policy names", acceptedConnections},
		{"a release whose image does not exist is rolled back to the running version", selfHealedRelease(noImage, "ImagePull")},
		{"a release in a crash loop is rolled back to the running version", selfHealedRelease(crashing, "CrashLoopBackOff")},
		{"a release that does not start is not rolled back after a newer release", newerRelease},
		{"the first release of a Deployment has no rollback target and records an Event", noRollbackTarget},
		{"a stuck StatefulSet is rolled back, and only its stuck pod is replaced", selfHealedStatefulSet},
		{"a stuck DaemonSet is rolled back", selfHealedDaemonSet},
		{"an authorized user requests a rollback by REST", rollbackByREST},
		{"a rollback by REST without the right is rejected", rollbackByRESTDenied},
		{"the REST API of rollbacks has TLS only", rollbackAPIHasTLSOnly},
		{"a rollback to a version whose ChangeWorkload was deleted is admitted", rollbackToOlderVersion},
	})
}

// container is a strategic patch of the one container of builder's pods.
func container(fields string) string {
	return fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"sleep",%s}]}}}}`, fields)
}

var (
	noImage = container(`"image":"registry.invalid/there-is/no-such-image:1"`)
	// Without minReadySeconds a container is available before it crashes, and
	// its Deployment deletes a healthy pod.
	crashing = `{"spec":{"minReadySeconds":10,` + strings.TrimPrefix(container(`"command":["/bin/false"]`), `{"spec":{`)
	// unschedulable is for simulated pods, which always run when they have a
	// node.
	unschedulable = container(`"resources":{"requests":{"cpu":"100000"}}`)
)

// strategicPatch patches a workload.
func (n *namespace) strategicPatch(t *testing.T, kind workload.Kind, name, body string) {
	t.Helper()
	workloads := n.dynamic.Resource(kind.GroupVersionResource()).Namespace(n.name)
	if _, err := workloads.Patch(t.Context(), name, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
		t.Fatalf("patch %s %s: %v", kind.LowerKind(), name, err)
	}
}

// readWorkload returns a workload of a kind.
func (n *namespace) readWorkload(ctx context.Context, kind workload.Kind, name string) (*workload.Workload, error) {
	u, err := n.dynamic.Resource(kind.GroupVersionResource()).Namespace(n.name).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return workload.FromUnstructured(kind, u)
}

// awaitAttempt waits until the current attempt of a workload has a number and a
// phase.
func (n *namespace) awaitAttempt(t *testing.T, within time.Duration, kind workload.Kind, name string, attempt int64, phase v1alpha1.ReleasePhase) *v1alpha1.ChangeWorkload {
	t.Helper()
	var found *v1alpha1.ChangeWorkload
	await(t, within, fmt.Sprintf("attempt %d of %s is %s", attempt, name, phase), func(ctx context.Context) error {
		w, err := n.readWorkload(ctx, kind, name)
		if err != nil {
			return err
		}
		release, _ := v1alpha1.ReleaseOf(w.Annotations)
		if release.Attempt != attempt {
			return fmt.Errorf("current attempt is %d", release.Attempt)
		}
		c, err := n.change.ChangeWorkloads(n.name).Get(ctx, v1alpha1.ChangeWorkloadName(name, release.Version), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if c.Spec.Attempt != attempt || c.Status.Phase != phase {
			return fmt.Errorf("%s has attempt %d and phase %q: %+v", c.Name, c.Spec.Attempt, c.Status.Phase, c.Status.Counts)
		}
		found = c
		return nil
	})
	return found
}

// awaitSavedTemplate waits until an attempt succeeded and its template is
// saved.
func (n *namespace) awaitSavedTemplate(t *testing.T, kind workload.Kind, name string, attempt int64) {
	t.Helper()
	c := n.awaitAttempt(t, rolloutTimeout, kind, name, attempt, v1alpha1.ReleaseSuccess)
	await(t, shortTimeout, "the template of "+c.Name+" is saved", func(ctx context.Context) error {
		c, err := n.change.ChangeWorkloads(n.name).Get(ctx, c.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if c.Status.SavedTemplateName == "" {
			return fmt.Errorf("status is %+v", c.Status)
		}
		return nil
	})
}

// checkSameTemplate fails unless both workloads have the same template.
func checkSameTemplate(t *testing.T, before, after *workload.Workload) {
	t.Helper()
	a, err := json.Marshal(before.Template)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(after.Template)
	if err != nil {
		t.Fatal(err)
	}
	if string(a) != string(b) {
		t.Errorf("the template changed:\n%s\n%s", a, b)
	}
}

// checkRollback fails unless the annotations of the workload record a rollback.
func (n *namespace) checkRollback(t *testing.T, kind workload.Kind, name string, want v1alpha1.RollbackKind, from int64) *v1alpha1.Rollback {
	t.Helper()
	w, err := n.readWorkload(t.Context(), kind, name)
	if err != nil {
		t.Fatal(err)
	}
	r := v1alpha1.RollbackOf(w.Annotations)
	if r == nil || r.Kind != want || r.FromAttempt != from || r.Attempt != from+1 {
		t.Fatalf("rollback of %s is %+v, want kind %s from attempt %d", name, r, want, from)
	}
	if !v1alpha1.IsRollback(w.Annotations) {
		t.Errorf("the release of %s is not a rollback: %v", name, w.Annotations)
	}
	return r
}

// selfHealedRelease is a release of real pods that cannot start.
func selfHealedRelease(broken, reason string) func(*testing.T, *environment) {
	return func(t *testing.T, e *environment) {
		n := e.optedInNamespace(t)
		n.create(t, builder.Deployment("web", 2))
		n.awaitSavedTemplate(t, workload.Deployment, "web", 1)
		before, err := n.readWorkload(t.Context(), workload.Deployment, "web")
		if err != nil {
			t.Fatal(err)
		}
		pods := n.podUIDs(t)

		n.strategicPatch(t, workload.Deployment, "web", broken)
		left := n.awaitRollbackStatus(t, selfHealingTimeout, "web", 2)
		if left.Status.Rollback.Kind != v1alpha1.RollbackSelfHealing {
			t.Errorf("rollback of %s is %+v", left.Name, left.Status.Rollback)
		}
		n.awaitAttempt(t, rolloutTimeout, workload.Deployment, "web", 3, v1alpha1.ReleaseSuccess)
		n.checkRollback(t, workload.Deployment, "web", v1alpha1.RollbackSelfHealing, 2)
		after, err := n.readWorkload(t.Context(), workload.Deployment, "web")
		if err != nil {
			t.Fatal(err)
		}
		checkSameTemplate(t, before, after)
		n.awaitEvent(t, "web", v1alpha1.ReasonSelfHealed, reason)
		// The healthy pods were not replaced.
		now := n.podUIDs(t)
		for name, uid := range pods {
			if now[name] != uid {
				t.Errorf("healthy pod %s was replaced", name)
			}
		}
	}
}

// awaitRollbackStatus waits until the ChangeWorkload of an attempt records its
// rollback. The ChangeWorkload is deleted when the rollback succeeds.
func (n *namespace) awaitRollbackStatus(t *testing.T, within time.Duration, name string, attempt int64) *v1alpha1.ChangeWorkload {
	t.Helper()
	var found *v1alpha1.ChangeWorkload
	watch, err := n.change.ChangeWorkloads(n.name).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	timeout := time.NewTimer(within)
	defer timeout.Stop()
	for found == nil {
		select {
		case event := <-watch.ResultChan():
			c, ok := event.Object.(*v1alpha1.ChangeWorkload)
			if ok && c.Spec.ServiceName == name && c.Spec.Attempt == attempt && c.Status.Rollback != nil {
				found = c
			}
		case <-timeout.C:
			t.Fatalf("attempt %[2]d of %[1]s was not rolled back within %[3]s", name, attempt, within)
		}
	}
	return found
}

// newerRelease is applied while the previous release is stuck.
func newerRelease(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.create(t, builder.Deployment("web", 2, builder.Simulated))
	n.awaitSavedTemplate(t, workload.Deployment, "web", 1)
	n.strategicPatch(t, workload.Deployment, "web", unschedulable)
	await(t, rolloutTimeout, "the release has an unschedulable pod", func(ctx context.Context) error {
		list, err := n.kube.CoreV1().Pods(n.name).List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Pending"})
		if err != nil || len(list.Items) == 0 {
			return fmt.Errorf("%d pods, %w", len(list.Items), err)
		}
		return nil
	})
	n.strategicPatch(t, workload.Deployment, "web", container(`"resources":{"requests":{"cpu":"1m"}}`))
	n.awaitAttempt(t, rolloutTimeout, workload.Deployment, "web", 3, v1alpha1.ReleaseSuccess)
	// The last applied release is current after the threshold too.
	deadline := time.Now().Add(selfHealingThreshold + 5*time.Second)
	await(t, selfHealingTimeout, "the threshold has passed", func(context.Context) error {
		if time.Now().Before(deadline) {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	w, err := n.readWorkload(t.Context(), workload.Deployment, "web")
	if err != nil {
		t.Fatal(err)
	}
	if release, _ := v1alpha1.ReleaseOf(w.Annotations); release.Attempt != 3 || v1alpha1.RollbackOf(w.Annotations) != nil {
		t.Errorf("current attempt is %d, annotations %v", release.Attempt, w.Annotations)
	}
}

// noRollbackTarget: the Event of a Deployment that never started reports that
// no version succeeded.
func noRollbackTarget(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.create(t, builder.Deployment("web", 1, builder.Simulated, func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.NodeSelector = map[string]string{"type": "none"}
	}))
	await(t, selfHealingTimeout, "an Event reports that no rollback is possible", func(ctx context.Context) error {
		list, err := n.kube.CoreV1().Events(n.name).List(ctx, metav1.ListOptions{
			FieldSelector: "involvedObject.name=web,reason=" + v1alpha1.ReasonRollbackImpossible})
		if err != nil || len(list.Items) == 0 {
			return fmt.Errorf("%d Events, %w", len(list.Items), err)
		}
		return nil
	})
	w, err := n.readWorkload(t.Context(), workload.Deployment, "web")
	if err != nil {
		t.Fatal(err)
	}
	if release, _ := v1alpha1.ReleaseOf(w.Annotations); release.Attempt != 1 {
		t.Errorf("current attempt is %d", release.Attempt)
	}
}

// rollbackToOlderVersion is a rollback to a version before the last one that
// succeeded.
func rollbackToOlderVersion(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.create(t, builder.Deployment("web", 1, builder.Simulated))
	n.awaitSavedTemplate(t, workload.Deployment, "web", 1)
	n.release(t, "web", "v2")
	n.awaitSavedTemplate(t, workload.Deployment, "web", 2)
	await(t, shortTimeout, "the ChangeWorkload of v1 is deleted, because v2 succeeded", func(ctx context.Context) error {
		list, err := n.change.ChangeWorkloads(n.name).List(ctx, metav1.ListOptions{})
		if err == nil && slices.ContainsFunc(list.Items, func(c v1alpha1.ChangeWorkload) bool { return c.Spec.Attempt == 1 }) {
			err = errors.New("it exists")
		}
		return err
	})
	n.release(t, "web", "v3")
	n.judgeByHand(t, n.awaitBatch(t, rolloutTimeout, "web", 1, "exists", exists), "unpass", "find error")
	n.awaitDeployment(t, shortTimeout, "web", "is suspended", isSuspended)
	n.release(t, "web", "v1")
	n.awaitAttempt(t, rolloutTimeout, workload.Deployment, "web", 4, v1alpha1.ReleaseSuccess)
	n.awaitDeployment(t, shortTimeout, "web", "is not suspended", isNotSuspended)
}

// historyLimit: OpsConfigInfo history-limit bounds the number of saved
// templates.
func historyLimit(t *testing.T, e *environment) {
	e.setConfig(t, v1alpha1.ConfigHistoryLimit, "2")
	n := e.optedInNamespace(t)
	n.applyManifest(t, statefulSet("db", 1))
	n.awaitSavedTemplate(t, workload.StatefulSet, "db", 1)
	for i, marker := range []string{"v2", "v3", "v4"} {
		n.strategicPatch(t, workload.StatefulSet, "db", releaseOf(marker))
		n.awaitSavedTemplate(t, workload.StatefulSet, "db", int64(i+2))
	}
	w, err := n.readWorkload(t.Context(), workload.StatefulSet, "db")
	if err != nil {
		t.Fatal(err)
	}
	all, err := n.kube.AppsV1().ControllerRevisions(n.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := savedtemplate.List(t.Context(), n.kube, w)
	if err != nil {
		t.Fatal(err)
	}
	if len(kept) != 2 || kept[0].Release.Attempt != 4 || kept[1].Release.Attempt != 3 {
		t.Errorf("saved templates are %+v", kept)
	}
	// The StatefulSet controller keeps its own revisions and does not adopt
	// saved templates.
	for i := range all.Items {
		r := &all.Items[i]
		if ours := r.Labels[savedtemplate.WorkloadUIDLabel] != ""; ours == metav1.IsControlledBy(r, w) {
			t.Errorf("%s: labels %v, owners %+v", r.Name, r.Labels, r.OwnerReferences)
		}
	}
	if own := len(all.Items) - len(kept); own != 4 {
		t.Errorf("the StatefulSet controller has %d revisions, want 4", own)
	}
}

// automaticRollback returns to the newest version that succeeded.
func automaticRollback(t *testing.T, e *environment) {
	e.setConfig(t, v1alpha1.ConfigAutomaticRollback, "")
	n := e.optedInNamespace(t)
	n.create(t, builder.Deployment("web", 3, builder.Simulated, builder.Paced(3)))
	n.awaitSavedTemplate(t, workload.Deployment, "web", 1)
	before, err := n.readWorkload(t.Context(), workload.Deployment, "web")
	if err != nil {
		t.Fatal(err)
	}
	n.release(t, "web", "v2")
	n.judgeByHand(t, n.awaitBatch(t, rolloutTimeout, "web", 1, "exists", exists), "unpass", "find error")
	n.awaitAttempt(t, rolloutTimeout, workload.Deployment, "web", 3, v1alpha1.ReleaseSuccess)
	n.checkRollback(t, workload.Deployment, "web", v1alpha1.RollbackVerdict, 2)
	after, err := n.readWorkload(t.Context(), workload.Deployment, "web")
	if err != nil {
		t.Fatal(err)
	}
	checkSameTemplate(t, before, after)
	n.awaitDeployment(t, shortTimeout, "web", "is not suspended", isNotSuspended)
	n.awaitEvent(t, "web", v1alpha1.ReasonRolledBack, "the version failed (CheckFailed)")

	// A rollback that fails its check is not rolled back.
	n.judgeByHand(t, n.awaitBatch(t, shortTimeout, "web", 1, "exists", exists), "unpass", "find error")
	n.awaitAttempt(t, rolloutTimeout, workload.Deployment, "web", 3, v1alpha1.ReleaseSuspend)
	await(t, shortTimeout, "the saved template of the failed version is deleted", func(ctx context.Context) error {
		all, err := n.kube.AppsV1().ControllerRevisions(n.name).List(ctx, metav1.ListOptions{})
		if err != nil || len(all.Items) > 0 {
			return fmt.Errorf("%d saved templates, %w", len(all.Items), err)
		}
		return nil
	})
	if d := n.deployment(t, "web"); !isSuspended(d) || d.Annotations[v1alpha1.AttemptAnnotation] != "3" {
		t.Errorf("labels %v, annotations %v", d.Labels, d.Annotations)
	}
}
