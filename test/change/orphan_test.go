//go:build controlplane

package change

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// The garbage collector of this control plane removes the owner from the saved template and the ChangeWorkloads.
func TestAWorkloadThatIsCreatedAgainAfterAnOrphanDeletion(t *testing.T) {
	t.Parallel()
	w := newFixture(t).createHeld(t)
	kubectl(t, "", "delete", "deployment", w.name, "--cascade=orphan", "--namespace", w.namespace)
	w = w.create(t, workload.Deployment, builder.Deployment(w.name, replicas, builder.Simulated, builder.Paced(1)))
	live, err := w.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	await(t, "only releases of the new Deployment exist, and its template is saved", func(ctx context.Context) error {
		all, err := w.Breakwater.AppV1alpha1().ChangeWorkloads(w.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(all.Items) != 1 || all.Items[0].Spec.WorkloadRef.UID != live.UID || all.Items[0].Status.SavedTemplateName == "" {
			return fmt.Errorf("Deployment %s has the ChangeWorkloads %+v", live.UID, all.Items)
		}
		k, err := w.Kube.AppsV1().ControllerRevisions(w.namespace).Get(ctx, all.Items[0].Status.SavedTemplateName, metav1.GetOptions{})
		if err == nil && !v1alpha1.OwnedBy(k, live.UID) {
			err = fmt.Errorf("its saved template is %+v", k.ObjectMeta)
		}
		return err
	})
}
