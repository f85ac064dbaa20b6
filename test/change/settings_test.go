//go:build controlplane

package change

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// Controller and webhook watch the settings, and no other process reads them.
func TestAChangedSettingIsInEffectInTheWebhook(t *testing.T) {
	f := newFixture(t)
	w := f.create(t, workload.Deployment, builder.Deployment("web", replicas, builder.Simulated, builder.Paced(1)))
	w.awaitPhase(t, v1alpha1.ReleaseSuccess, 1)
	w.mustPatch(t, releaseOf("v2"))
	w.judge(t, w.awaitBatch(t, 2), "unpass")
	w.awaitPhase(t, v1alpha1.ReleaseSuspend, 2)
	t.Cleanup(func() {
		if err := f.changeConfig(context.Background(), "blocking", `{"enable":true}`); err != nil {
			t.Error(err)
		}
	})
	for _, on := range []bool{true, false, true} {
		f.mustChangeConfig(t, "blocking", fmt.Sprintf(`{"enable":%t}`, on))
		await(t, fmt.Sprintf("with isBlockingUp %t a release is denied: %t", on, on), func(ctx context.Context) error {
			_, err := w.Dynamic.Resource(w.kind.GroupVersionResource()).Namespace(w.namespace).
				Patch(ctx, "web", types.MergePatchType, []byte(releaseOf("v3")), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			switch {
			case !on:
				return err
			case err == nil || !strings.Contains(err.Error(), "deployment web is suspended"):
				return fmt.Errorf("the answer is %w", err)
			}
			return nil
		})
	}
}

func TestAChangedSettingIsInEffectInTheController(t *testing.T) {
	f := newFixture(t)
	f.SetConfig(t, v1alpha1.ConfigReleaseTimeout, "24h")
	w := f.create(t, workload.Deployment, builder.Deployment("web", 1, builder.Simulated, unschedulable))
	await(t, "the release runs", func(ctx context.Context) error {
		c, err := w.release(ctx)
		if err == nil && c.Status.Phase == "" {
			err = errors.New("it has no phase")
		}
		return err
	})
	f.mustChangeConfig(t, string(v1alpha1.ConfigReleaseTimeout), `{"content":"1s"}`)
	w.awaitPhase(t, v1alpha1.ReleaseFailed, 1)
}

// changeConfig changes the spec of a setting.
func (f fixture) changeConfig(ctx context.Context, name, spec string) error {
	_, err := f.Breakwater.AppV1alpha1().OpsConfigInfoes(v1alpha1.SystemNamespace).
		Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"spec":%s}`, spec), metav1.PatchOptions{})
	return err
}

func (f fixture) mustChangeConfig(t *testing.T, name, spec string) {
	t.Helper()
	if err := f.changeConfig(t.Context(), name, spec); err != nil {
		t.Fatalf("set %s of %s: %v", spec, name, err)
	}
}
