//go:build e2e || controlplane

package protection

import (
	"testing"

	"github.com/breakwater-dev/breakwater/test/e2e/impersonation"
)

// An attacker who takes over a process of part protection cannot exempt a namespace from
// other guards. All tests of budgets show that the processes can write their label.
func TestTheServiceAccountsOfProtectionWriteOnlyTheirLabelToNamespaces(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	for _, account := range []string{"protection-controller", "protection-webhook"} {
		for patch, want := range map[string]string{
			`{"metadata":{"labels":{"policy.breakwater.dev/guarded":"true"}}}`:                       "",
			`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`:            "only the label",
			`{"metadata":{"annotations":{"a":"b"}}}`:                                                 "only the label",
			`{"metadata":{"finalizers":["a.example/b"]}}`:                                            "only the label",
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"A","name":"a","uid":"a"}]}}`: "only the label",
		} {
			impersonation.Expect(t, account, want, "patch", "namespace", n.name, "--type", "merge", "-p", patch)
		}
	}
}
