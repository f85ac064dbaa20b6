//go:build controlplane

package load

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/e2e/clients"
	"github.com/breakwater-dev/breakwater/test/e2e/testnamespace"
	"github.com/breakwater-dev/breakwater/test/poll"
)

// timeout bounds the time until a state is reached, whatever the size and the machine.
const timeout = 90 * time.Minute

// podsOfANode is the capacity of a simulated node. There are 10: with the default of 110
// pods the last pods of a soak would stay Pending.
const podsOfANode = 1000

// enlargeNodes makes room for the pods of all sizes.
func enlargeNodes(ctx context.Context) error {
	c, err := clients.Connect()
	if err != nil {
		return err
	}
	nodes, err := c.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	room := fmt.Appendf(nil, `{"status":{"capacity":{"pods":"%[1]d"},"allocatable":{"pods":"%[1]d"}}}`, podsOfANode)
	for i := range nodes.Items {
		name := nodes.Items[i].Name
		if _, err := c.Kube.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, room, metav1.PatchOptions{}, "status"); err != nil {
			return fmt.Errorf("enlarge node %s: %w", name, err)
		}
	}
	return nil
}

// fixture is an opted-in namespace.
type fixture struct {
	*clients.Clients
	namespace string
}

func newFixture(t testing.TB) fixture {
	t.Helper()
	c := clients.Require(t)
	return fixture{c, testnamespace.OptedIn(t, c.Kube, "load-")}
}

func (f fixture) create(t testing.TB, d *appsv1.Deployment) {
	t.Helper()
	if _, err := f.Kube.AppsV1().Deployments(f.namespace).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// await waits until the condition returns no error.
func await(t testing.TB, what string, condition func(context.Context) error) {
	t.Helper()
	poll.Require(t, time.Second, timeout, what, condition)
}

// awaitReleases waits until n releases are a Success.
func (f fixture) awaitReleases(t testing.TB, n int) []v1alpha1.ChangeWorkload {
	t.Helper()
	var found []v1alpha1.ChangeWorkload
	await(t, fmt.Sprintf("%d releases succeed", n), func(ctx context.Context) error {
		list, err := f.Breakwater.AppV1alpha1().ChangeWorkloads(f.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		found = list.Items
		counts, done := v1alpha1.PodCounts{}, 0
		for i := range found {
			s := &found[i].Status
			counts.Pods, counts.Passed, counts.Unjudged = counts.Pods+s.Counts.Pods, counts.Passed+s.Counts.Passed, counts.Unjudged+s.Counts.Unjudged
			if s.Phase == v1alpha1.ReleaseSuccess {
				done++
			}
		}
		if done < n {
			return fmt.Errorf("%d of %d: %+v", done, n, counts)
		}
		return nil
	})
	return found
}

// checkJudged fails for each release with a pod that the server did not pass.
func checkJudged(t *testing.T, releases []v1alpha1.ChangeWorkload, pods int) {
	t.Helper()
	for i := range releases {
		c := &releases[i]
		if got := c.Status.Counts; got != (v1alpha1.PodCounts{Pods: int32(pods), Passed: int32(pods)}) {
			t.Errorf("%s: %+v, want %d judged and passed pods", c.Name, got, pods)
		}
		if cond := c.Status.GetCondition(v1alpha1.ReleaseOrderJudged); !cond.IsTrue() {
			t.Errorf("%s: condition OrderJudged is %+v", c.Name, cond)
		}
	}
}
