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
	"github.com/breakwater-dev/breakwater/test/builder"
)

// optIn does not judge or restart running workloads. Later releases are judged.
func optIn(t *testing.T, e *environment) {
	n := e.notOptedInNamespace(t)
	n.create(t, builder.Deployment("web", 2))
	n.awaitAvailable(t, "web")
	before := n.deployment(t, "web")
	pods := n.restartCounts(t)

	n.run(t, "label", "namespace", n.name, v1alpha1.NamespaceLabel+"="+v1alpha1.NamespaceEnabled)
	c := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	if cond := c.Status.GetCondition("Succeeded"); c.Spec.Attempt != 0 || cond == nil || cond.Reason != v1alpha1.ReasonBaseline {
		t.Errorf("the first ChangeWorkload has attempt %d and condition %+v, want the baseline", c.Spec.Attempt, cond)
	}
	if batches, err := n.changePods(t.Context(), c); err != nil || len(batches) != 0 {
		t.Errorf("the baseline has %d batches (%v), want none", len(batches), err)
	}
	after := n.deployment(t, "web")
	if diff := cmp.Diff(before.Spec, after.Spec); diff != "" {
		t.Errorf("opting in changed the spec of the Deployment (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(pods, n.restartCounts(t)); diff != "" {
		t.Errorf("opting in changed the pods (-before +after):\n%s", diff)
	}

	n.release(t, "web", "v2")
	c = n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	if batches, err := n.changePods(t.Context(), c); err != nil || len(batches) != 2 || c.Spec.Attempt != 1 {
		t.Errorf("attempt %d after the opt-in has %d batches (%v), want attempt 1 with 2", c.Spec.Attempt, len(batches), err)
	}
}

// restartCounts returns the number of restarts of each pod in the namespace.
func (n *namespace) restartCounts(t *testing.T) map[types.UID]int32 {
	t.Helper()
	list, err := n.kube.CoreV1().Pods(n.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[types.UID]int32{}
	for i := range list.Items {
		out[list.Items[i].UID] = 0
		for _, s := range list.Items[i].Status.ContainerStatuses {
			out[list.Items[i].UID] += s.RestartCount
		}
	}
	return out
}

// awaitAvailable waits until the rollout of a Deployment is complete.
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

// templateAppliedAgain is a new attempt and is judged again.
func templateAppliedAgain(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.create(t, builder.Deployment("web", 2, builder.Simulated))
	seen := map[string]*v1alpha1.ChangeWorkload{}
	for attempt, marker := range []string{"v1", "v2", "v1", "v2"} {
		if attempt > 0 {
			n.release(t, "web", marker)
		}
		c := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
		if c.Spec.Attempt != int64(attempt+1) {
			t.Errorf("release %d is attempt %d", attempt+1, c.Spec.Attempt)
		}
		if last := seen[marker]; last != nil && (last.Name != c.Name || last.UID == c.UID) {
			t.Errorf("the same template has ChangeWorkload %s (%s) first and then %s (%s)", last.Name, last.UID, c.Name, c.UID)
		}
		seen[marker] = c
		n.awaitClaims(t, shortTimeout, "web")
		batches, err := n.changePods(t.Context(), c)
		if err != nil || len(batches) < 2 {
			t.Errorf("attempt %d has %d batches (%v), want one per pod", c.Spec.Attempt, len(batches), err)
		}
	}
}

// unchangedTemplate: Breakwater does not change the pod template in a namespace
// that is opted in.
func unchangedTemplate(t *testing.T, e *environment) {
	optedIn, other := e.optedInNamespace(t), e.notOptedInNamespace(t)
	d := builder.Deployment("web", 1, builder.Simulated)
	want := other.create(t, d.DeepCopy()).Spec.Template
	if diff := cmp.Diff(want, optedIn.create(t, d.DeepCopy()).Spec.Template); diff != "" {
		t.Errorf("the template changed at creation (-want +got):\n%s", diff)
	}
	optedIn.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	if diff := cmp.Diff(want, optedIn.deployment(t, "web").Spec.Template); diff != "" {
		t.Errorf("the template changed after creation (-want +got):\n%s", diff)
	}
}

// notOptedIn: Breakwater changes nothing in a namespace that is not opted in,
// and its requests do not reach the webhook.
func notOptedIn(t *testing.T, e *environment) {
	n := e.notOptedInNamespace(t)
	before := n.webhookRequests(t)
	n.create(t, builder.Deployment("web", 3, builder.Simulated))
	n.awaitAvailable(t, "web")
	n.run(t, "label", "deployment", "web", v1alpha1.SuspendLabel+"="+suspendedSince)
	n.release(t, "web", "v2")
	n.run(t, "scale", "deployment", "web", "--replicas=4")
	n.run(t, "label", "deployment", "web", v1alpha1.IgnoredSuspendLabel+"=true")
	n.awaitAvailable(t, "web")
	if diff := cmp.Diff(before, n.webhookRequests(t)); diff != "" {
		t.Errorf("requests of a namespace that is not opted in reached the webhook (-before +after):\n%s", diff)
	}
	n.checkUntouched(t)

	// The same requests in a namespace that is opted in are counted, so the
	// metrics are valid.
	in := e.optedInNamespace(t)
	in.create(t, builder.Deployment("web", 1, builder.Simulated))
	in.run(t, "label", "deployment", "web", v1alpha1.SuspendLabel+"="+suspendedSince)
	in.checkDenied(t, "web", "patch", "deployment", "web", "-p", templatePatch, "--type", "merge")
	after := in.webhookRequests(t)
	for _, webhook := range deploymentWebhooks {
		if cmp.Equal(before[webhook], after[webhook]) {
			t.Errorf("the API server's metrics do not count the request to %s", webhook)
		}
	}
}

// deploymentWebhooks are Breakwater's webhooks for Deployments.
var deploymentWebhooks = []string{"mdeployment.kb.io", "vdeployment.kb.io", "vrelease.kb.io"}

// webhookRequests returns the lines of the API server's metrics that count requests to each of deploymentWebhooks.
func (n *namespace) webhookRequests(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for line := range strings.Lines(n.run(t, "get", "--raw", "/metrics")) {
		if !strings.HasPrefix(line, "apiserver_admission_webhook_request_total{") &&
			!strings.HasPrefix(line, "apiserver_admission_webhook_admission_duration_seconds_count{") {
			continue
		}
		for _, webhook := range deploymentWebhooks {
			if strings.Contains(line, `name="`+webhook+`"`) {
				out[webhook] = append(out[webhook], strings.TrimSpace(line))
			}
		}
	}
	return out
}

// checkUntouched checks that a namespace has no object, key or Event of
// Breakwater.
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
		t.Errorf("%d ChangeWorkloads (%v), want none", len(ours.Items), err)
	}
	events, err := n.kube.CoreV1().Events(n.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events.Items {
		if source := event.Source.Component + event.ReportingController; strings.Contains(source, "breakwater") {
			t.Errorf("an Event of Breakwater: %s", event.Message)
		}
	}
}

// checkNoBreakwaterKeys checks that an object has no key of Breakwater except
// the labels that the test set.
func checkNoBreakwaterKeys(t *testing.T, kind string, m metav1.ObjectMeta) {
	t.Helper()
	for _, keys := range []map[string]string{m.Labels, m.Annotations} {
		for key := range keys {
			ours := strings.Contains(key, "antgroup.com/") || strings.Contains(key, "alipay.com/")
			if ours && key != v1alpha1.IgnoredSuspendLabel && key != v1alpha1.SuspendLabel {
				t.Errorf("%s %s carries %s", kind, m.Name, key)
			}
		}
	}
}
