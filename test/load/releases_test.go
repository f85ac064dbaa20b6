//go:build controlplane

package load

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/builder"
)

func TestNoPodOfManyReleasesIsUnjudged(t *testing.T) {
	f := newFixture(t)
	releases, pods := size(t, "LOAD_RELEASES", 10), size(t, "LOAD_PODS", 10)
	began := time.Now()
	for i := range releases {
		f.create(t, builder.Deployment(fmt.Sprintf("web%d", i), int32(pods), builder.Simulated))
	}
	checkJudged(t, f.awaitReleases(t, releases), pods)
	t.Logf("%d releases of %d pods in %s", releases, pods, time.Since(began).Round(time.Second))
}

func TestEachPodOfALargeReleaseIsJudged(t *testing.T) {
	f := newFixture(t)
	pods := size(t, "LOAD_LARGE", 100)
	began := time.Now()
	f.create(t, builder.Deployment("web", int32(pods), builder.Simulated))
	checkJudged(t, f.awaitReleases(t, 1), pods)
	t.Logf("%d pods one by one in %s", pods, time.Since(began).Round(time.Second))
}

// One pod of two has passed. The other is not scheduled, so the release cannot succeed.
func TestTheOrderOfAWorkloadThatIsDeletedInTheMiddleIsClosed(t *testing.T) {
	f := newFixture(t)
	f.create(t, builder.Deployment("web", 2, builder.Simulated, gated))
	f.openGateOfOnePod(t)
	api := f.Breakwater.AppV1alpha1().ChangeWorkloads(f.namespace)
	var order string
	await(t, "the order is open and a pod has passed", func(ctx context.Context) error {
		list, err := api.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(list.Items) != 1 || !list.Items[0].Status.Order.Opened() || list.Items[0].Status.Counts.Passed != 1 {
			return fmt.Errorf("releases %+v", list.Items)
		}
		order = list.Items[0].Spec.OrderID
		return nil
	})
	if err := f.Kube.AppsV1().Deployments(f.namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "the ChangeWorkload is deleted", func(ctx context.Context) error {
		list, err := api.List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("finalizers %v, order %+v", list.Items[0].Finalizers, list.Items[0].Status.Order)
		}
		return err
	})
	at := slices.IndexFunc(server.Orders(), func(o double.Order) bool { return o.Order == order })
	if at < 0 {
		t.Fatalf("the server has no order %s", order)
	}
	if got := server.Orders()[at].State; got != string(v1alpha1.OrderCancel) {
		t.Errorf("the order is %q at the server", got)
	}
}
