//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/e2e/kubectl"
	"github.com/breakwater-dev/breakwater/test/e2e/testnamespace"
)

// namespace is a namespace of one test.
type namespace struct {
	*environment
	name string
	// kubectl has this namespace as its default.
	kubectl kubectl.Kubectl
}

// optedInNamespace creates a namespace that is opted in.
func (e *environment) optedInNamespace(t *testing.T) *namespace {
	t.Helper()
	return e.createNamespace(t, map[string]string{v1alpha1.NamespaceLabel: v1alpha1.NamespaceEnabled})
}

// notOptedInNamespace creates a namespace that is not opted in.
func (e *environment) notOptedInNamespace(t *testing.T) *namespace {
	t.Helper()
	return e.createNamespace(t, map[string]string{})
}

// createNamespace creates a namespace and deletes it after the test. A failed
// test first writes the state of the namespace to bin/e2e.
func (e *environment) createNamespace(t *testing.T, labels map[string]string) *namespace {
	t.Helper()
	labels[testLabel] = ofThisPackage
	own, err := testnamespace.Create(t.Context(), e.kube, metav1.ObjectMeta{
		GenerateName: "e2e-", Labels: labels, Annotations: map[string]string{testLabel: t.Name()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if t.Failed() {
			e.dump(ctx, t, own.Name, own.CreationTimestamp.Time)
		}
		if err := testnamespace.Delete(ctx, e.kube, own.Name); err != nil {
			t.Errorf("delete namespace %s: %v", own.Name, err)
		}
	})
	k, err := kubectl.In(own.Name, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &namespace{environment: e, name: own.Name, kubectl: k}
}

// run runs kubectl, which must exit with 0, and returns its stdout.
func (n *namespace) run(t *testing.T, args ...string) string {
	t.Helper()
	return n.kubectl.Require(t, "", args...)
}

// cleanup runs kubectl after the test, which must exit with 0.
func (n *namespace) cleanup(t *testing.T, args ...string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := n.kubectl.Output(ctx, "", args...); err != nil {
			t.Error(err)
		}
	})
}

// try runs kubectl with any exit code.
func (n *namespace) try(t *testing.T, args ...string) kubectl.Result {
	t.Helper()
	return n.kubectl.Try(t, "", args...)
}

// checkDenied runs kubectl, which must be denied with exactly the message of a
// suspended Deployment.
func (n *namespace) checkDenied(t *testing.T, deployment string, args ...string) {
	t.Helper()
	text := "deployment " + deployment + " is suspended"
	want := "Error from server (" + text + `): admission webhook "vdeployment.kb.io" denied the request: ` + text
	r := n.try(t, args...)
	if r.Code == 0 || r.Errors() != want {
		t.Errorf("the command was not denied as expected:\n%s\nwant on stderr:\n%s", r, want)
	}
	warnings := strings.Join(r.Warnings(), "\n")
	// After a repair the denial names another way out.
	wayOut := strings.Contains(warnings, v1alpha1.IgnoredSuspendLabel) || strings.Contains(warnings, v1alpha1.BypassAnnotation)
	if !strings.Contains(warnings, "suspended since") || !wayOut {
		t.Errorf("kubectl prints no reason or no way out:\n%s", warnings)
	}
}
