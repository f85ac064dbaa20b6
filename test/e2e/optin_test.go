//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/gen"
)

// optIn judges nothing that runs, restarts nothing, and what comes
// afterwards is judged.
func optIn(t *testing.T, e *environment) {
	n := e.notOptedInNamespace(t)
	n.create(t, gen.Deployment("web", 2))
	n.awaitAvailable(t, "web")
	before := n.deployment(t, "web")
	pods := n.restartCounts(t)

	n.run(t, "label", "namespace", n.name, v1alpha1.NamespaceLabel+"="+v1alpha1.NamespaceEnabled)
	c := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.WorkloadSuccess)
	if cond := c.Status.GetCondition("Succeeded"); c.Spec.Attempt != 0 || cond == nil || cond.Reason != v1alpha1.ReasonBaseline {
		t.Errorf("the first ChangeWorkload is about attempt %d and says %+v, want the baseline", c.Spec.Attempt, cond)
	}
	if batches, err := n.changePods(t.Context(), c); err != nil || len(batches) != 0 {
		t.Errorf("what ran already is judged in %d batches (%v)", len(batches), err)
	}
	after := n.deployment(t, "web")
	if diff := cmp.Diff(before.Spec, after.Spec); diff != "" {
		t.Errorf("opting in changed the spec of the Deployment (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(pods, n.restartCounts(t)); diff != "" {
		t.Errorf("opting in touched the pods (-before +after):\n%s", diff)
	}

	n.release(t, "web", "v2")
	c = n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.WorkloadSuccess)
	if batches, err := n.changePods(t.Context(), c); err != nil || len(batches) != 2 || c.Spec.Attempt != 1 {
		t.Errorf("attempt %d after opting in was judged in %d batches (%v), want attempt 1 in 2", c.Spec.Attempt, len(batches), err)
	}
}

// restartCounts tells the pods of a namespace, and how often each was restarted.
func (n *namespace) restartCounts(t *testing.T) map[types.UID]int32 {
	t.Helper()
	list, err := n.kube.CoreV1().Pods(n.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[types.UID]int32{}
	for i := range list.Items {
		for _, s := range list.Items[i].Status.ContainerStatuses {
			out[list.Items[i].UID] += s.RestartCount
		}
	}
	return out
}

// awaitAvailable waits until the roll-out of a Deployment is over.
func (n *namespace) awaitAvailable(t *testing.T, name string) {
	t.Helper()
	await(t, rolloutTimeout, "Deployment "+name+" is available", func(ctx context.Context) error {
		d, err := n.kube.AppsV1().Deployments(n.name).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s := d.Status
		if s.ObservedGeneration < d.Generation || s.UpdatedReplicas != *d.Spec.Replicas ||
			s.Replicas != s.UpdatedReplicas || s.AvailableReplicas != s.Replicas {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
}

// templateAppliedAgain is a new attempt: it is judged anew.
func templateAppliedAgain(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.create(t, gen.Deployment("web", 2, gen.Simulated))
	seen := map[string]*v1alpha1.ChangeWorkload{}
	for attempt, marker := range []string{"v1", "v2", "v1", "v2"} {
		if attempt > 0 {
			n.release(t, "web", marker)
		}
		c := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.WorkloadSuccess)
		if c.Spec.Attempt != int64(attempt+1) {
			t.Errorf("release %d is attempt %d", attempt+1, c.Spec.Attempt)
		}
		if last := seen[marker]; last != nil && (last.Name != c.Name || last.UID == c.UID) {
			t.Errorf("the same template made ChangeWorkload %s (%s) first and then %s (%s)", last.Name, last.UID, c.Name, c.UID)
		}
		seen[marker] = c
		n.awaitClaims(t, "web")
		batches, err := n.changePods(t.Context(), c)
		if err != nil || len(batches) < 2 {
			t.Errorf("attempt %d was judged in %d batches (%v), want one a pod", c.Spec.Attempt, len(batches), err)
		}
	}
}

// unchangedTemplate is what its author wrote, in a guarded namespace as in any other.
func unchangedTemplate(t *testing.T, e *environment) {
	guarded, free := e.optedInNamespace(t), e.notOptedInNamespace(t)
	d := gen.Deployment("web", 1, gen.Simulated)
	want := free.create(t, d.DeepCopy()).Spec.Template
	if diff := cmp.Diff(want, guarded.create(t, d.DeepCopy()).Spec.Template); diff != "" {
		t.Errorf("the template was changed at creation (-want +got):\n%s", diff)
	}
	guarded.awaitPhase(t, rolloutTimeout, "web", v1alpha1.WorkloadSuccess)
	if diff := cmp.Diff(want, guarded.deployment(t, "web").Spec.Template); diff != "" {
		t.Errorf("the template was changed afterwards (-want +got):\n%s", diff)
	}
}

// notOptedIn is never noticed, and its requests never reach the webhook.
func notOptedIn(t *testing.T, e *environment) {
	n := e.notOptedInNamespace(t)
	before := n.webhookRequests(t)
	n.create(t, gen.Deployment("web", 3, gen.Simulated))
	n.awaitAvailable(t, "web")
	n.release(t, "web", "v2")
	n.run(t, "scale", "deployment", "web", "--replicas=4")
	n.run(t, "label", "deployment", "web", v1alpha1.IgnoredSuspendLabel+"=true")
	n.awaitAvailable(t, "web")
	if diff := cmp.Diff(before, n.webhookRequests(t)); diff != "" {
		t.Errorf("requests of a namespace that is not opted in reached the webhook (-before +after):\n%s", diff)
	}
	n.checkUntouched(t)

	// The same in a namespace that is opted in does reach it: the numbers are right.
	in := e.optedInNamespace(t)
	in.create(t, gen.Deployment("web", 1, gen.Simulated))
	if cmp.Equal(before, in.webhookRequests(t)) {
		t.Error("no metric of the API server tells that the webhook was asked")
	}
}

// webhookRequests returns how often the API server has asked each of our webhooks about
// Deployments.
func (n *namespace) webhookRequests(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(n.run(t, "get", "--raw", "/metrics")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		counts := strings.HasPrefix(name, "apiserver_admission_webhook_request_total{") ||
			strings.HasPrefix(name, "apiserver_admission_webhook_admission_duration_seconds_count{")
		if counts && strings.Contains(name, `deployment.kb.io"`) {
			out[name] = value
		}
	}
	return out
}

// checkUntouched checks that nothing of ours is in a namespace.
func (n *namespace) checkUntouched(t *testing.T) {
	t.Helper()
	d := n.deployment(t, "web")
	checkNoBreakwaterKeys(t, "Deployment", d.ObjectMeta)
	sets, err := n.kube.AppsV1().ReplicaSets(n.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range sets.Items {
		checkNoBreakwaterKeys(t, "ReplicaSet", sets.Items[i].ObjectMeta)
	}
	pods, err := n.kube.CoreV1().Pods(n.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		checkNoBreakwaterKeys(t, "Pod", pods.Items[i].ObjectMeta)
	}
	ours, err := n.change.ChangeWorkloads(n.name).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(ours.Items) != 0 {
		t.Errorf("%d ChangeWorkloads are there (%v)", len(ours.Items), err)
	}
	events, err := n.kube.CoreV1().Events(n.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events.Items {
		if source := event.Source.Component + event.ReportingController; strings.Contains(source, "breakwater") {
			t.Errorf("an Event of ours: %s", event.Message)
		}
	}
}

// checkNoBreakwaterKeys checks that an object carries none of our keys but the one that
// its author wrote.
func checkNoBreakwaterKeys(t *testing.T, kind string, m metav1.ObjectMeta) {
	t.Helper()
	for _, keys := range []map[string]string{m.Labels, m.Annotations} {
		for key := range keys {
			ours := strings.Contains(key, "antgroup.com/") || strings.Contains(key, "alipay.com/")
			if ours && key != v1alpha1.IgnoredSuspendLabel {
				t.Errorf("%s %s carries %s", kind, m.Name, key)
			}
		}
	}
}
