//go:build e2e

package protection

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/e2e/faultinjection"
)

// servingManifest returns the Knative Service web of Serving. Its Revision has two pods on the real
// node, until the autoscaler decides.
func servingManifest(annotations string) string {
	return `{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: web},
 spec: {template: {metadata: {annotations: {autoscaling.knative.dev/window: 6s, autoscaling.knative.dev/initial-scale: "2", ` + annotations + `}},
 spec: {enableServiceLinks: false, containers: [{image: busybox, command: [/bin/busybox, httpd, -f, -p, "8080"]}]}}}}`
}

const twoPods = `autoscaling.knative.dev/min-scale: "2"`

// The Revision of each version is created, scaled and given its traffic by Serving.
func TestABudgetTellsTheScaleDownOfServingFromAKill(t *testing.T) {
	t.Parallel()
	n, c := newNamespace(t), connect(t)
	n.apply(t, servingManifest(twoPods))
	n.run(t, "wait", "--for=condition=Ready", "services.serving.knative.dev/web", "--timeout=120s")
	n.apply(t, knativeBudget("minAvailable: 1"))
	n.awaitGuarding(t, shortTimeout)
	awaitNumbers(t, c, n.name, 2, 1, 2, 1)

	// A pod whose processes do not run is unavailable, and the other one is protected.
	pods := n.revisionPods(t, "web-00001")
	if len(pods) != 2 {
		t.Fatalf("the Revision has the pods %v", pods)
	}
	resume := pausePod(t, c, n.name, pods[0])
	awaitNumbers(t, c, n.name, 2, 1, 1, 0)
	n.checkDenied(t, budgetDenial, "delete", "pod", pods[1])
	if err := n.evict(t, c, pods[1]); !apierrs.IsTooManyRequests(err) || !strings.Contains(err.Error(), budgetDenial) {
		t.Errorf("the eviction of the available pod: %v", err)
	}
	resume()
	awaitNumbers(t, c, n.name, 2, 1, 2, 1)

	// The traffic moves to a Revision that may scale to zero. The autoscaler stops the pods of both, of
	// which the budget allows none to be deleted.
	n.run(t, "patch", "pub", "web", "--type=merge", "-p", `{"spec":{"minAvailable":2}}`)
	awaitNumbers(t, c, n.name, 2, 2, 2, 0)
	n.checkDenied(t, budgetDenial, "delete", "pod", pods[1])
	numbers := n.recordNumbers(t, c)
	n.apply(t, servingManifest(`test.breakwater.dev/release: v2`))
	n.awaitRevisionPods(t, "web-00001", 0)
	awaitNumbers(t, c, n.name, 0, 0, 0, 0)
	n.awaitRevisionPods(t, "web-00002", 0)
	numbers.checkAvailable(t)

	n.wake(t)
	awaitNumbers(t, c, n.name, 1, 1, 1, 0)
}

// pausePod stops the processes of a pod until resume is called.
func pausePod(t *testing.T, c clients, namespace, name string) (resume func()) {
	t.Helper()
	pod, err := c.kube.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	run, err := faultinjection.Pause(pod)
	if err != nil {
		t.Fatal(err)
	}
	resume = func() {
		if err := run(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(resume)
	return resume
}

// budgetNumbers are the statuses of the budget that a watch saw.
type budgetNumbers struct {
	watch watch.Interface
	seen  chan []string
}

// recordNumbers begins to record the numbers of the budget.
func (n *namespace) recordNumbers(t *testing.T, c clients) budgetNumbers {
	t.Helper()
	w, err := c.policy.PolicyV1alpha1().PodUnavailableBudgets(n.name).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	numbers := budgetNumbers{w, make(chan []string, 1)}
	go func() {
		var missing []string
		for e := range w.ResultChan() {
			if b, ok := e.Object.(*v1alpha1.PodUnavailableBudget); ok && b.Status.CurrentAvailable < b.Status.DesiredAvailable {
				missing = append(missing, fmt.Sprintf("%d of %d", b.Status.CurrentAvailable, b.Status.DesiredAvailable))
			}
		}
		numbers.seen <- missing
	}()
	return numbers
}

// checkAvailable fails if pods were missing since the record began.
func (b budgetNumbers) checkAvailable(t *testing.T) {
	t.Helper()
	b.watch.Stop()
	if missing := <-b.seen; len(missing) > 0 {
		t.Errorf("the scale-down counted as unavailable: %v pods were available", missing)
	}
}

// wake sends a request to the Service web, which has no pods. The activator holds it until a pod runs.
func (n *namespace) wake(t *testing.T) {
	t.Helper()
	ip := n.run(t, "-n", "breakwater-ingress", "get", "service", "private", "-o", "jsonpath={.spec.clusterIP}")
	ctx, cancel := context.WithTimeout(t.Context(), shortTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+ip+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "web." + n.name + ".svc.cluster.local"
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= http.StatusInternalServerError {
		t.Errorf("the request was answered with %s", response.Status)
	}
}

// Serving copies the annotations of the template to the Revision and its Deployment.
func TestAKnativeServiceOfServingHasOneGeneratedBudget(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.apply(t, servingManifest(twoPods+`, policy.kruise.io/generate-pub: "true", policy.kruise.io/generate-pub-minAvailable: "2", policy.kruise.io/generate-pdb: "true"`))
	n.run(t, "wait", "--for=condition=Ready", "services.serving.knative.dev/web", "--timeout=120s")
	n.run(t, "wait", "--for=create", "pub/knativeservice-web", "--timeout=60s")
	n.run(t, "wait", "--for=condition=Guarding", "pub/knativeservice-web", "--timeout=60s")
	if got := n.run(t, "get", "deployment", "web-00001-deployment", "-o", `jsonpath={.metadata.annotations.policy\.kruise\.io/generate-pub}`); got != "true" {
		t.Errorf("the Deployment has the annotation %q", got)
	}
	if got, want := n.run(t, "get", "pub,pdb", "-o", "name"), "podunavailablebudget.policy.kruise.io/knativeservice-web\npoddisruptionbudget.policy/knativeservice-web\n"; got != want {
		t.Errorf("the namespace has the budgets\n%s", got)
	}
	n.checkDenied(t, "is denied by PodUnavailableBudget knativeservice-web", "delete", "pod", n.revisionPods(t, "web-00001")[0])
	n.run(t, "delete", "services.serving.knative.dev", "web", "--timeout=60s")
	n.awaitRevisionPods(t, "web-00001", 0)
	n.await(t, "the budgets are deleted", func() error {
		if got := n.list(t, "pub", metav1.ListOptions{}, itemNames) + n.list(t, "pdb", metav1.ListOptions{}, itemNames); got != "" {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
}
