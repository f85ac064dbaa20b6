//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

// knativeServiceCommands: kubectl apply, and kn service update, are releases that are judged. Both are
// denied while the Service is suspended, and flags of kn that do not change the template are not.
func knativeServiceCommands(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	manifest := fmt.Sprintf(knativeService, n.imageOfDouble(t))
	kind := workload.KnativeService
	n.applyManifest(t, manifest)
	n.awaitSavedTemplate(t, kind, "web", 1)
	n.mustKnUpdate(t, "--env", "A=b")
	n.awaitSavedTemplate(t, kind, "web", 2)
	n.applyManifest(t, strings.ReplaceAll(manifest, `"v1"`, `"v2"`))
	n.awaitSavedTemplate(t, kind, "web", 3)
	good := n.revisionOf(t, 3)

	n.setChecks(t, double.CheckRule{Match: batch(1, double.Post), Then: failed()})
	n.mustKnUpdate(t, "--env", "A=c")
	n.awaitAttempt(t, rolloutTimeout, kind, "web", 4, v1alpha1.ReleaseSuspend)
	n.awaitTraffic(t, good)
	const denial = "service web is suspended"
	for _, change := range [][]string{{"--env", "A=d"}, {"--scale", "2"}, {"--label", "a=d"}} {
		if out, err := n.knUpdate(t, change...); err == nil || !strings.Contains(err.Error(), denial) {
			t.Errorf("kn service update web %s was not denied: %s, %v", strings.Join(change, " "), out, err)
		}
	}
	r := n.kubectl.Try(t, strings.ReplaceAll(manifest, `"v1"`, `"v3"`), "apply", "-f", "-")
	if r.Code == 0 || !strings.Contains(r.Stderr, denial) {
		t.Errorf("not denied with %q:\n%s", denial, r)
	}
	for _, change := range [][]string{{"--tag", n.revisionOf(t, 4) + "=debug"}, {"--untag", "debug"}, {"--cluster-local"}} {
		n.mustKnUpdate(t, change...)
	}
}

// mustKnUpdate runs kn service update, which must succeed.
func (n *namespace) mustKnUpdate(t *testing.T, flags ...string) {
	t.Helper()
	out, err := n.knUpdate(t, flags...)
	if want := fmt.Sprintf("Service 'web' updated in namespace '%s'.\n", n.name); err != nil || !strings.HasPrefix(out, want) {
		t.Fatalf("kn service update web %s: %q, %v", strings.Join(flags, " "), out, err)
	}
}

// knUpdate runs kn service update, which `bin/cluster build kn` has built, and returns its stdout. The
// error has its stderr.
func (n *namespace) knUpdate(t *testing.T, flags ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "kn", append([]string{"service", "update", "web", "--no-wait"}, flags...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+n.kubectl.Config())
	out, err := command.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return string(out), err
}
