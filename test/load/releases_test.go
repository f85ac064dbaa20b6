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
	"github.com/breakwater-dev/breakwater/test/controlplane"
)

func TestNoPodOfManyReleasesIsUnjudged(t *testing.T) {
	f := newFixture(t)
	releases, pods := controlplane.Size(t, "LOAD_RELEASES", 10), controlplane.Size(t, "LOAD_PODS", 10)
	began := time.Now()
	for i := range releases {
		f.create(t, builder.Deployment(fmt.Sprintf("web%d", i), int32(pods), builder.Simulated))
	}
	checkJudged(t, f.awaitReleases(t, releases), pods)
	t.Logf("%d releases of %d pods in %s", releases, pods, time.Since(began).Round(time.Second))
}

// The rate limit makes the first calls wait for longer than each timeout of a stage.
func TestNoPodIsUnjudgedIfTheQueueOfCallsIsLongerThanTheTimeouts(t *testing.T) {
	const (
		releases  = 4
		pods      = 10
		perSecond = 3
		timeout   = 6 * time.Second
	)
	f := newFixture(t)
	for _, kind := range []v1alpha1.ConfigType{v1alpha1.ConfigPreTimeout, v1alpha1.ConfigPostTimeout, v1alpha1.ConfigOrderTimeout} {
		f.SetConfig(t, kind, timeout.String())
	}
	f.setServer(t, fmt.Sprintf(`"qps":"%d","burst":"%[1]d"`, perSecond), `"qps":null,"burst":null`)
	await(t, "the rate limit is in effect", func(ctx context.Context) error {
		config, err := submitServer.Config(ctx)
		if err == nil && config.QPS != perSecond {
			err = fmt.Errorf("it is %v", config.QPS)
		}
		return err
	})
	for i := range releases {
		f.create(t, builder.Deployment(fmt.Sprintf("web%d", i), pods, builder.Simulated))
	}
	checkJudged(t, f.awaitReleases(t, releases), pods)
	f.checkQueued(t, timeout)
}

// checkQueued checks that each batch was judged, and that the first call of some was made later than the
// timeout after the batch was created, so that the test had a queue.
func (f fixture) checkQueued(t *testing.T, timeout time.Duration) {
	t.Helper()
	list, err := f.Breakwater.AppV1alpha1().ChangePods(f.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	longest := time.Duration(0)
	for i := range list.Items {
		p := &list.Items[i]
		if cond := p.Status.GetCondition(v1alpha1.BatchJudged); !cond.IsTrue() {
			t.Errorf("%s: condition Judged is %+v, want True", p.Name, cond)
		}
		if first := p.Status.SubmissionOf(v1alpha1.StagePre).FirstIntent(); !first.IsZero() {
			longest = max(longest, first.Sub(p.CreationTimestamp.Time))
		}
	}
	t.Logf("the first call of a batch waited up to %s", longest)
	if longest < timeout {
		t.Errorf("the first call of a batch waited at most %s: the queue was not longer than the timeout of a stage, %s", longest, timeout)
	}
}

func TestEachPodOfALargeReleaseIsJudged(t *testing.T) {
	f := newFixture(t)
	pods := controlplane.Size(t, "LOAD_LARGE", 100)
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
