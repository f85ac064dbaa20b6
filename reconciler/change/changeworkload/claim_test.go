package changeworkload

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
)

func batchOf(owner string, n int) *v1alpha1.ChangePod {
	c := &v1alpha1.ChangePod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: v1alpha1.ChangePodName("web", n)}}
	c.Spec.ChangeWorkloadID = "web"
	if owner != "" {
		yes := true
		c.OwnerReferences = []metav1.OwnerReference{{Kind: "ChangeWorkload", Name: "web", UID: "u", Controller: &yes}}
	}
	return c
}

func TestABatchTakesTheNextNumberAfterOrphans(t *testing.T) {
	r := &Reconciler{client: fake.NewSimpleClientset(batchOf("", 1), batchOf("", 2))}
	if err := r.createChangePod(t.Context(), batchOf("web", 1)); err != nil {
		t.Fatal(err)
	}
	made, err := r.client.AppV1alpha1().ChangePods("default").Get(t.Context(), v1alpha1.ChangePodName("web", 3), metav1.GetOptions{})
	if err != nil || metav1.GetControllerOf(made) == nil {
		t.Errorf("batch 3 is %v, %v", made, err)
	}
}

func TestABatchIsNotCreatedWhileItsNameHasAnOwner(t *testing.T) {
	r := &Reconciler{client: fake.NewSimpleClientset(batchOf("", 1), batchOf("web", 2))}
	if err := r.createChangePod(t.Context(), batchOf("web", 1)); !isStale(err) {
		t.Errorf("got %v, want an error of a stale cache", err)
	}
}
