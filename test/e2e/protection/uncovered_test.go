//go:build controlplane

package protection

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The API server's counts have no namespace, so this test does not run in parallel.
func TestOnlyDeletionsWithABudgetOrAFlowControlCallAWebhook(t *testing.T) {
	n, guarded, kube := newNamespace(t), newNamespace(t), connect(t).kube
	n.awaitNoGuards(t)
	n.apply(t, deploymentManifest(3, "{}"))
	pod := func() string { return n.awaitRunning(t, "web", 3)[0] }
	for request, send := range map[string]func(){
		"deletion":              func() { n.run(t, "delete", "pod", pod()) },
		"forced deletion":       func() { n.run(t, "delete", "pod", pod(), "--force") },
		"deletecollection":      func() { n.run(t, "delete", "--raw", n.path("pods")) },
		"deletion of the owner": func() { n.run(t, "delete", "replicasets", "--all", "--cascade=foreground") },
		"eviction": func() {
			eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: pod()}}
			if err := kube.PolicyV1().Evictions(n.name).Evict(t.Context(), eviction); err != nil {
				t.Error(err)
			}
		},
		"scale-down": func() {
			n.run(t, "scale", "deployment", "web", "--replicas=0")
			n.awaitRunning(t, "web", 0)
			n.run(t, "scale", "deployment", "web", "--replicas=3")
		},
	} {
		n.awaitRunning(t, "web", 3)
		if diff := cmp.Diff(map[string]int{}, n.webhookCalls(t, send)); diff != "" {
			t.Errorf("%s called webhooks (-want +got):\n%s", request, diff)
		}
	}

	guarded.applyWithBudget(t, deploymentManifest(3, "{}"), budgetManifest("maxUnavailable: 3"))
	covered := guarded.podNames(t)[0]
	calls := n.webhookCalls(t, func() { guarded.run(t, "delete", "pod", covered) })
	if calls[deletionsAllowedBy("vpodbudget.kb.io")] == 0 {
		t.Errorf("a deletion with a budget called only %v", calls)
	}
	newFlowControl(t, n, "").setLimit(t, 100)
	counted := pod()
	calls = n.webhookCalls(t, func() { n.run(t, "delete", "pod", counted) })
	if calls[deletionsAllowedBy("vdeletionflow.kb.io")] == 0 {
		t.Errorf("a deletion with a flow control called only %v", calls)
	}
}

// awaitNoGuards waits until the namespaces and flow controls of earlier tests are deleted:
// the garbage collector deletes pods and owners in terminating namespaces.
func (n *namespace) awaitNoGuards(t *testing.T) {
	t.Helper()
	n.await(t, "no namespace has a budget, and no flow control is registered", func() error {
		namespaces := n.list(t, "namespace", metav1.ListOptions{LabelSelector: "policy.breakwater.dev/guarded"}, itemNames)
		webhooks := n.get(t, "validatingwebhookconfiguration", "breakwater-deletionflow", "{.webhooks[*].name}")
		if namespaces+webhooks != "" {
			return fmt.Errorf("got %q and %q", namespaces, webhooks)
		}
		return nil
	})
}

// webhookCall is a series of the API server's metric of calls to webhooks.
var webhookCall = regexp.MustCompile(`(?m)^apiserver_admission_webhook_admission_duration_seconds_count\{(.*)\} (\d+)$`)

// deletionsAllowedBy returns the labels of the calls for deletions that a webhook allows.
func deletionsAllowedBy(webhook string) string {
	return fmt.Sprintf("name=%q,operation=\"DELETE\",rejected=\"false\",type=\"validating\"", webhook)
}

// webhookCalls returns how often the API server called webhooks during requests, by the
// labels of its metric. The API server counts a call before it answers the request, and
// repeats the call if the object changes meanwhile.
func (n *namespace) webhookCalls(t *testing.T, requests func()) map[string]int {
	t.Helper()
	calls := map[string]int{}
	count := func(sign int) {
		for _, m := range webhookCall.FindAllStringSubmatch(n.run(t, "get", "--raw", "/metrics"), -1) {
			value, err := strconv.Atoi(m[2])
			if err != nil {
				t.Fatal(err)
			}
			if calls[m[1]] += sign * value; calls[m[1]] == 0 {
				delete(calls, m[1])
			}
		}
	}
	count(-1)
	requests()
	count(1)
	return calls
}
