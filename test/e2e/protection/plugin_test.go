//go:build controlplane

package protection

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/breakwater-dev/breakwater/cli"
)

// runPlugin runs `kubectl breakwater`, which must end with the exit code and print the words.
func runPlugin(t *testing.T, code int, words []string, args ...string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	got := cli.Run(t.Context(), "test", args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	if got != code {
		t.Errorf("%v ended with %d, want %d\n%s%s", args, got, code, out.String(), errOut.String())
	}
	for _, w := range words {
		if !strings.Contains(out.String()+errOut.String(), w) {
			t.Errorf("%v does not print %q:\n%s%s", args, w, out.String(), errOut.String())
		}
	}
	return out.String()
}

func TestThePluginSimulatesDeletionsAndEvictions(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.applyWithBudget(t, deploymentManifest(2, "{}"), budgetManifest("maxUnavailable: 0"))
	pod := n.podNames(t)[0]
	node := n.run(t, "get", "pod", pod, "-o", "jsonpath={.spec.nodeName}")
	in := []string{"-n", n.name}

	runPlugin(t, 1, []string{"pod/" + pod + " would be denied", "PodUnavailableBudget web", "1 of 1 requests would be denied"}, append(in, "simulate", "delete", "pod/"+pod)...)
	runPlugin(t, 1, []string{"pod/" + pod + " would be denied", "PodUnavailableBudget web"}, append(in, "simulate", "evict", pod)...)
	runPlugin(t, 1, []string{n.name + "/pod/" + pod + " would be denied"}, append(in, "simulate", "drain", node)...)
	runPlugin(t, 0, []string{"web", "NoneAllowed"}, append(in, "budgets")...)
	runPlugin(t, 0, []string{"podunavailablebudget/web is Denying (NoneAllowed)", "2 of 2 pods are available, and 2 must be available", "kubectl edit pub web"}, append(in, "explain", "pub/web")...)

	var answer struct {
		Requests []struct {
			Object          string
			Allowed, Denied bool
		}
	}
	n.apply(t, budgetManifest("maxUnavailable: 1"))
	n.run(t, "wait", "--for=jsonpath={.status.unavailableAllowed}=1", "pub/web", "--timeout=60s")
	out := runPlugin(t, 0, nil, append(in, "simulate", "evict", pod, "-o", "json")...)
	if err := json.Unmarshal([]byte(out), &answer); err != nil || len(answer.Requests) != 1 || !answer.Requests[0].Allowed || answer.Requests[0].Denied {
		t.Errorf("the answer is %+v, %v", answer, err)
	}
	if got := len(n.podNames(t)); got != 2 {
		t.Errorf("%d pods are left after simulations, want 2", got)
	}
}

func TestThePluginNamesWhatItCannotSimulate(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	runPlugin(t, 1, []string{"is not in namespace"}, "-n", n.name, "simulate", "delete", "pod/none")
	runPlugin(t, 1, []string{"read node none"}, "-n", n.name, "simulate", "drain", "none")
	runPlugin(t, 0, []string{"No pod needs permissions."}, "-n", n.name, "permissions")
}

func TestDoctorFailsWhereProcessesAreMissing(t *testing.T) {
	t.Parallel()
	// The processes of this control plane are in the process of the tests.
	runPlugin(t, 1, []string{"OK   protection: CRDs: 2 established", "OK   protection: webhooks", "Deployment protection-webhook is missing", "INFO change: not installed"}, "doctor")
}
