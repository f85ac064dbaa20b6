//go:build controlplane

package change

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// The commands are those of docs/change/workloads.md.
func TestCommandsResumeAHeldWorkloadAfterItsNamespaceOptedOut(t *testing.T) {
	t.Parallel()
	// Seconds a pod. The fail has to arrive before the rollout is complete: then nothing is held.
	const pace = 4
	nodes := newFixture(t).simulatedNodes(t, replicas)
	for name, tc := range map[string]struct {
		kind   workload.Kind
		object any
		resume []string
	}{
		"Deployment": {
			workload.Deployment, builder.Deployment("web", replicas, builder.Simulated, builder.Paced(pace)),
			[]string{"rollout", "resume", "deployment", "web"},
		},
		"StatefulSet": {
			workload.StatefulSet, builder.StatefulSet("web", replicas, pace),
			[]string{"patch", "statefulset", "web", "--type", "merge", "-p", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`},
		},
		"DaemonSet": {
			workload.DaemonSet, builder.DaemonSet("web", nodes, pace),
			[]string{"patch", "daemonset", "web", "--type", "merge", "-p", `{"spec":{"updateStrategy":{"type":"RollingUpdate"}}}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t).create(t, tc.kind, tc.object)
			w.awaitPhase(t, v1alpha1.ReleaseSuccess, 1)
			w.mustPatch(t, releaseOf("v2"))
			w.judge(t, w.awaitBatch(t, 2), "unpass")
			w.awaitHeld(t)
			w.awaitPhase(t, v1alpha1.ReleaseSuspend, 2)

			kubectl(t, "", "label", "namespace", w.namespace, v1alpha1.NamespaceLabel+"-")
			for _, command := range [][]string{
				tc.resume,
				{"label", w.kind.LowerKind(), "web", v1alpha1.SuspendLabel + "-"},
				{"annotate", w.kind.LowerKind(), "web", v1alpha1.HoldAnnotation + "-"},
			} {
				kubectl(t, "", append(command, "-n", w.namespace)...)
			}
			await(t, "all pods have the version that was held", func(context.Context) error {
				if n := w.updatedPods(t, "v2"); n != replicas {
					return fmt.Errorf("%d of %d have it", n, replicas)
				}
				return nil
			})
			w.awaitResumed(t)
		})
	}
}

// simulatedNodes returns the host names of n nodes.
func (f fixture) simulatedNodes(t *testing.T, n int) []string {
	t.Helper()
	nodes, err := f.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{Limit: int64(n)})
	if err != nil || len(nodes.Items) < n {
		t.Fatalf("%d nodes, %v", len(nodes.Items), err)
	}
	names := make([]string, n)
	for i := range names {
		names[i] = nodes.Items[i].Labels[corev1.LabelHostname]
	}
	return names
}

func TestAServerSideApplyAfterARollbackConflictsWithItsFieldManager(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := target{f, workload.Deployment, "web"}
	apply := func(marker string, pace int32, flags ...string) (string, error) {
		manifest, err := json.Marshal(builder.Deployment("web", replicas, builder.Simulated, builder.Paced(pace), builder.Release(marker)))
		if err != nil {
			t.Fatal(err)
		}
		args := append([]string{"apply", "--server-side", "--field-manager=ci", "-n", f.namespace, "-f", "-"}, flags...)
		command := exec.CommandContext(t.Context(), "kubectl", args...)
		command.Stdin = strings.NewReader(string(manifest))
		out, err := command.CombinedOutput()
		return string(out), err
	}
	mustApply := func(marker string, pace int32, flags ...string) {
		t.Helper()
		if out, err := apply(marker, pace, flags...); err != nil {
			t.Fatalf("apply %s: %s", marker, out)
		}
	}
	mustApply("v1", 1)
	w.awaitSaved(t, 1)
	mustApply("v2", standing)
	w.judge(t, w.awaitBatch(t, 2), "unpass")
	w.awaitHeld(t)
	if managers := w.managersOf(t, `"f:paused"`); !slices.Equal(managers, []string{"breakwater-hold"}) {
		t.Errorf("managers of spec.paused are %q, want breakwater-hold", managers)
	}
	mustApply("v2", 1)
	w.requestRollback(t, 2)
	w.checkComplete(t, "v1", 3)

	if out, err := apply("v3", 1); err == nil || !strings.Contains(out, `conflict with "breakwater-rollback"`) {
		t.Errorf("apply v3: %v %s, want a conflict with breakwater-rollback", err, out)
	}
	mustApply("v3", 1, "--force-conflicts")
	w.checkComplete(t, "v3", 4)
}

// managersOf returns the managers of a field of the workload.
func (w target) managersOf(t *testing.T, field string) []string {
	t.Helper()
	var managers []string
	live, err := w.live(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range live.GetManagedFields() {
		if strings.Contains(string(entry.FieldsV1.Raw), field) {
			managers = append(managers, entry.Manager)
		}
	}
	return managers
}
