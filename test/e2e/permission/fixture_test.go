//go:build e2e

package permission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/e2e/kubectl"
	"github.com/breakwater-dev/breakwater/test/e2e/testnamespace"
	"github.com/breakwater-dev/breakwater/test/provider"
	"github.com/breakwater-dev/breakwater/test/provider/setup"
)

// namespace is a namespace of one test.
type namespace struct {
	name string
	kubectl.Kubectl
}

func newNamespace(t *testing.T, labels map[string]string) *namespace {
	t.Helper()
	all := map[string]string{"test.breakwater.dev/e2e": "true"}
	for key, value := range labels {
		all[key] = value
	}
	own, err := testnamespace.Create(t.Context(), testCluster.Kube, metav1.ObjectMeta{
		GenerateName: "e2e-permission-", Labels: all,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err := testnamespace.Delete(ctx, testCluster.Kube, own.Name)
		if err != nil && !apierrs.IsNotFound(err) {
			t.Errorf("delete namespace %s: %v", own.Name, err)
		}
	})
	k, err := kubectl.In(own.Name, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &namespace{own.Name, k}
}

var enabled = map[string]string{podmeta.Label: podmeta.LabelEnabled}

// run runs kubectl and returns its output. It fails the test if kubectl fails.
func (n *namespace) run(t *testing.T, args ...string) string {
	t.Helper()
	return n.Require(t, "", args...)
}

func (n *namespace) apply(t *testing.T, manifest string) kubectl.Result {
	t.Helper()
	return n.Try(t, manifest, "apply", "-f", "-")
}

func (n *namespace) mustApply(t *testing.T, manifest string) {
	t.Helper()
	n.Require(t, manifest, "apply", "-f", "-")
}

// deployment returns a Deployment with the sets in its annotation.
func deployment(name, sets string, replicas int) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s, annotations: {stke.io/permission-set: %[2]q}},
 spec: {replicas: %[3]d, selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}},
 spec: {terminationGracePeriodSeconds: 1, containers: [{name: app, image: busybox, command: [/bin/sleep, infinity]}]}}}}`, name, sets, replicas)
}

// podWith returns a pod with the sets in its annotation.
func podWith(name, sets, policy, command string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, annotations: {stke.io/permission-set: %q}},
 spec: {restartPolicy: %s, terminationGracePeriodSeconds: 1, containers: [{name: app, image: busybox, command: [/bin/sh, -c, %q]}]}}`, name, sets, policy, command)
}

func (n *namespace) pods(t *testing.T) []corev1.Pod {
	t.Helper()
	list, err := testCluster.Kube.CoreV1().Pods(n.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// podOfApp waits for the pod with the label app.
func (n *namespace) podOfApp(t *testing.T, app string) *corev1.Pod {
	t.Helper()
	var found *corev1.Pod
	eventually(t, shortTimeout, "a pod of "+app+" exists", func() error {
		list, err := testCluster.Kube.CoreV1().Pods(n.name).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if list.Items[i].DeletionTimestamp == nil {
				found = &list.Items[i]
				return nil
			}
		}
		return fmt.Errorf("%d pods", len(list.Items))
	})
	return found
}

func (n *namespace) get(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	p, err := testCluster.Kube.CoreV1().Pods(n.name).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// waitForReason waits until the pod's condition has the reason, and returns its message.
func (n *namespace) waitForReason(t *testing.T, name, reason string) string {
	t.Helper()
	var message string
	eventually(t, shortTimeout, fmt.Sprintf("condition %s of %s has reason %s", podmeta.ConditionAuthorized, name, reason), func() error {
		c := podmeta.Condition(n.get(t, name), podmeta.ConditionAuthorized)
		if c == nil {
			return fmt.Errorf("no condition")
		}
		if message = c.Message; c.Reason != reason {
			return fmt.Errorf("%s: %s", c.Reason, c.Message)
		}
		return nil
	})
	return message
}

// waitForEvent waits for an Event of the pod, and returns the first.
func (n *namespace) waitForEvent(t *testing.T, pod, reason string) *corev1.Event {
	t.Helper()
	var found *corev1.Event
	eventually(t, shortTimeout, "an Event "+reason+" on "+pod, func() error {
		list, err := testCluster.Kube.CoreV1().Events(n.name).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=" + reason + ",involvedObject.name=" + pod})
		if err != nil {
			return err
		}
		if len(list.Items) == 0 {
			return fmt.Errorf("no Event")
		}
		found = &list.Items[0]
		return nil
	})
	return found
}

// waitForDeletion waits until the pod no longer exists.
func (n *namespace) waitForDeletion(t *testing.T, within time.Duration, name string) {
	t.Helper()
	eventually(t, within, "pod "+name+" is deleted", func() error {
		p, err := testCluster.Kube.CoreV1().Pods(n.name).Get(t.Context(), name, metav1.GetOptions{})
		if apierrs.IsNotFound(err) {
			return nil
		} else if err != nil {
			return err
		}
		return fmt.Errorf("phase %s, finalizers %v, deletion %v", p.Status.Phase, p.Finalizers, p.DeletionTimestamp)
	})
}

func eventually(t *testing.T, within time.Duration, what string, holds func() error) {
	t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), 250*time.Millisecond, within, true, func(context.Context) (bool, error) {
		last = holds()
		return last == nil, nil
	}); err != nil {
		t.Fatalf("timed out after %s: %s; last error: %v", within, what, last)
	}
}

// providerRecords returns the records of the double of the provider.
func providerRecords(t *testing.T) provider.Stats {
	t.Helper()
	b, err := testCluster.ProviderStats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// grantsOf returns the grants of a pod at the double of the provider.
func grantsOf(t *testing.T, p *corev1.Pod) []provider.Entry {
	t.Helper()
	return providerRecords(t).OfPod(string(p.UID))
}

func setFaults(t *testing.T, f provider.Faults) {
	t.Helper()
	set := func(ctx context.Context, f provider.Faults) {
		if err := testCluster.SetFaults(ctx, f); err != nil {
			t.Error(err)
		}
	}
	set(t.Context(), f)
	t.Cleanup(func() { set(context.Background(), provider.Faults{}) })
}

// register registers a provider, and a set for all pods with one permission of this provider.
func register(t *testing.T, p api.Provider, permission, set string) {
	t.Helper()
	meta := func(name string) api.Meta { return api.Meta{Name: name, Owner: setup.Owner} }
	if err := testCluster.Register(t.Context(), setup.Object{Kind: "providers", Body: p},
		setup.Object{Kind: "permissions", Body: api.Permission{Meta: meta(permission), Provider: p.Name, Parameters: map[string]string{"name": permission}}},
		setup.Object{Kind: "permissionsets", Body: api.PermissionSet{Meta: meta(set), Permissions: []string{permission}, Pods: []api.PodPattern{{Namespace: "*"}}}}); err != nil {
		t.Fatal(err)
	}
}

// applications returns the applications of a pod at the centre.
func applications(t *testing.T, p *corev1.Pod) []api.Application {
	t.Helper()
	query := url.Values{"podUID": {string(p.UID)}, "cluster": {"default"}}
	status, raw, err := testCluster.Do(t.Context(), http.MethodGet, testCluster.Centre+"/v1/applications?"+query.Encode(), testCluster.Token, nil)
	var list api.ApplicationList
	if err != nil || status != http.StatusOK || json.Unmarshal(raw, &list) != nil {
		t.Fatalf("list applications: %d %s %v", status, raw, err)
	}
	return list.Items
}

// resetBreaker resets the breaker of a pod with the token of a user.
func resetBreaker(t *testing.T, p *corev1.Pod, token string) (int, string) {
	t.Helper()
	status, raw, err := testCluster.Do(t.Context(), http.MethodPost, fmt.Sprintf("%s/v1/pods/%s/%s/reset", testCluster.Server, p.Namespace, p.Name), token, nil)
	if err != nil {
		t.Fatal(err)
	}
	return status, strings.TrimSpace(string(raw))
}
