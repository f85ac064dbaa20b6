//go:build controlplane

package change

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// A workload that is deleted without its pods and then created again is no longer suspended.
func TestASuspensionIsNotLeftByDeletionWithoutTheRightToBypass(t *testing.T) {
	f := newFixture(t)
	f.SetConfig(t, v1alpha1.ConfigBypass, string(v1alpha1.BypassAuthorized))
	w := f.create(t, workload.Deployment, builder.Deployment("web", 3, builder.Simulated, builder.Paced(1)))
	w.judge(t, w.awaitBatch(t, 1), "unpass")
	w.awaitPhase(t, v1alpha1.ReleaseSuspend, 1)
	kubectl(t, "", "create", "rolebinding", "edits", "--clusterrole=edit", "--user=alice", "-n", f.namespace)

	await(t, "alice may not delete the suspended workload", func(ctx context.Context) error {
		for _, flags := range [][]string{{"--cascade=orphan"}, {"--cascade=foreground", "--wait=false"}, {"--now", "--wait=false"}} {
			args := append([]string{"delete", "deployment", "web", "--dry-run=server", "--as=alice", "-n", f.namespace}, flags...)
			out, err := exec.CommandContext(ctx, "kubectl", args...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), `deployment web is suspended: a deletion requires the verb "bypass"`) {
				return errors.New(string(out))
			}
		}
		return nil
	})
	if out, err := exec.CommandContext(t.Context(), "kubectl", "delete", "deployment", "--all", "--as=alice", "-n", f.namespace).CombinedOutput(); err == nil {
		t.Errorf("deletecollection: %s", out)
	}

	// A namespace terminates even if a workload in it is suspended.
	if err := f.Kube.CoreV1().Namespaces().Delete(t.Context(), f.namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "the namespace is deleted", func(ctx context.Context) error {
		_, err := f.Kube.CoreV1().Namespaces().Get(ctx, f.namespace, metav1.GetOptions{})
		if apierrs.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it exists"), err)
	})
}
