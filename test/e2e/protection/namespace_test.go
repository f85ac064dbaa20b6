//go:build e2e || controlplane

// Package protection tests part protection with kubectl on a cluster.
package protection

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/test/e2e/kubectl"
	"github.com/breakwater-dev/breakwater/test/e2e/testnamespace"
	"github.com/breakwater-dev/breakwater/test/poll"
)

// shortTimeout bounds the time until a controller has reacted.
const shortTimeout = time.Minute

// system selects the namespace of Breakwater.
var system = []string{"-n", systemNamespace}

// namespace is a namespace of one test.
type namespace struct {
	name string
	kubectl.Kubectl
	clients
}

func newNamespace(t *testing.T) *namespace {
	t.Helper()
	c := connect(t)
	own, err := testnamespace.Create(t.Context(), c.kube, metav1.ObjectMeta{
		GenerateName: "e2e-protection-", Labels: map[string]string{"test.breakwater.dev/e2e": "protection"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), shortTimeout)
		defer cancel()
		if err := c.kube.CoreV1().Namespaces().Delete(ctx, own.Name, metav1.DeleteOptions{}); err != nil && !strings.Contains(err.Error(), "not found") {
			t.Errorf("delete namespace %s: %v", own.Name, err)
		}
	})
	k, err := kubectl.In(own.Name, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &namespace{own.Name, k, c}
}

func (n *namespace) try(t *testing.T, args ...string) kubectl.Result {
	t.Helper()
	return n.Try(t, "", args...)
}

// run runs kubectl, which must succeed, and returns its stdout.
func (n *namespace) run(t *testing.T, args ...string) string {
	t.Helper()
	return n.Require(t, "", args...)
}

// checkDenied runs kubectl, which must be denied as Forbidden with the text.
func (n *namespace) checkDenied(t *testing.T, text string, args ...string) {
	t.Helper()
	r := n.try(t, args...)
	if r.Code == 0 || !strings.Contains(r.Stderr, text) || !strings.Contains(r.Stderr, "orbidden") {
		t.Errorf("the command was not denied with %q:\n%s", text, r)
	}
}

func (n *namespace) apply(t *testing.T, manifest string) {
	t.Helper()
	n.Require(t, manifest, "apply", "-f", "-")
}

// path returns the API path of a namespaced resource like deployments.apps.
func (n *namespace) path(resource string) string {
	name, group, grouped := strings.Cut(resource, ".")
	if !grouped {
		return fmt.Sprintf("/api/v1/namespaces/%s/%s", n.name, name)
	}
	return fmt.Sprintf("/apis/%s/v1/namespaces/%s/%s", group, n.name, name)
}

func (n *namespace) await(t *testing.T, what string, holds func() error) {
	t.Helper()
	poll.Require(t, 250*time.Millisecond, shortTimeout, what, func(context.Context) error { return holds() })
}
