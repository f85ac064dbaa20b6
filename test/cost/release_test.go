//go:build controlplane

package cost

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/controlplane"
	"github.com/breakwater-dev/breakwater/test/e2e/clients"
	"github.com/breakwater-dev/breakwater/test/e2e/testnamespace"
	"github.com/breakwater-dev/breakwater/test/poll"
)

// pods is the number of pods of a release. It exceeds the number of pods that wait for a call
// at a time.
const pods = 100

// timeout bounds the time until a state is reached.
const timeout = 3 * time.Minute

// await waits until the condition returns no error.
func await(t *testing.T, what string, condition func(ctx context.Context) error) {
	t.Helper()
	poll.Require(t, 200*time.Millisecond, timeout, what, condition)
}

// deployment is the Deployment of a test.
type deployment struct {
	*clients.Clients
	namespace string
}

func (d deployment) apply(t *testing.T, marker string) {
	t.Helper()
	deployments := d.Kube.AppsV1().Deployments(d.namespace)
	if marker == "" {
		if _, err := deployments.Create(t.Context(), builder.Deployment("web", pods, builder.Simulated), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		return
	}
	body := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, builder.Marker, marker)
	if _, err := deployments.Patch(t.Context(), "web", types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// awaitRollout waits until all pods run, awaitJudged until the release is a success and
// all its pods have the label of finished pods.
func (d deployment) awaitRollout(t *testing.T) {
	t.Helper()
	await(t, "the rollout is complete", func(ctx context.Context) error {
		live, err := d.live(ctx)
		if err == nil && (live.Status.ObservedGeneration != live.Generation || live.Status.AvailableReplicas != pods || live.Status.Replicas != pods) {
			err = fmt.Errorf("%+v", live.Status)
		}
		return err
	})
}

func (d deployment) awaitJudged(t *testing.T) {
	t.Helper()
	await(t, "the release is judged", func(ctx context.Context) error {
		live, err := d.live(ctx)
		if err != nil {
			return err
		}
		release, err := d.Breakwater.AppV1alpha1().ChangeWorkloads(d.namespace).
			Get(ctx, v1alpha1.ChangeWorkloadName("web", live.Labels[v1alpha1.VersionKey]), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if release.Status.Phase != v1alpha1.ReleaseSuccess || release.Spec.Attempt == 0 || release.Status.Counts.Unjudged > 0 {
			return fmt.Errorf("attempt %d is %q: %+v", release.Spec.Attempt, release.Status.Phase, release.Status.Counts)
		}
		labeled, err := d.Kube.CoreV1().Pods(d.namespace).List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.FinishedLabel})
		if err == nil && len(labeled.Items) < pods {
			err = fmt.Errorf("%d pods are labeled", len(labeled.Items))
		}
		return err
	})
}

func (d deployment) live(ctx context.Context) (*appsv1.Deployment, error) {
	return d.Kube.AppsV1().Deployments(d.namespace).Get(ctx, "web", metav1.GetOptions{})
}

// perPod are requests per released pod.
type perPod struct{ writes, reads, rejected float64 }

// costOf returns the requests that a release caused. Deletions by the garbage collector,
// Events and Leases are not counted.
func costOf(namespace string, sent map[controlplane.Request]controlplane.Sent) (perPod, map[controlplane.Request]controlplane.Sent) {
	out, counted := perPod{}, map[controlplane.Request]controlplane.Sent{}
	for kind, s := range sent {
		other := kind.Namespace != "" && kind.Namespace != namespace
		if other || kind.Verb == "watch" || kind.Resource == "leases" || kind.Resource == "events" || kind.Component == "webhook" {
			continue
		}
		counted[kind] = s
		out.rejected += float64(s.Rejected) / pods
		if kind.Write() {
			out.writes += float64(s.Requests) / pods
		} else {
			out.reads += float64(s.Requests) / pods
		}
	}
	return out, counted
}

func TestAReleasedPodCostsFewRequests(t *testing.T) {
	c := clients.Require(t)
	serve(t, c)
	for name, tc := range map[string]struct {
		percent string
		limit   perPod
		// least is the smallest number of writes per pod; each pod is labeled. Fewer mean that not all were counted.
		least float64
	}{
		// Six writes are necessary. A slow machine repeats more wake-ups, and each repetition is a
		// read.
		"one by one":         {"", perPod{writes: 6.8, reads: 2}, 5},
		"in batches of 10 %": {"10", perPod{writes: 2.1, reads: 1.1}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			setBatch(t, c, tc.percent)
			d := deployment{c, testnamespace.OptedIn(t, c.Kube, "cost-")}
			d.apply(t, "")
			d.awaitRollout(t)
			d.awaitJudged(t)

			plane.Requests().Reset()
			d.apply(t, "v2")
			d.awaitRollout(t)
			d.awaitJudged(t)
			got, counted := costOf(d.namespace, plane.Requests().Sent())
			t.Logf("per pod: %+v\n%s", got, controlplane.Table(counted, pods))
			if got.writes > tc.limit.writes || got.reads > tc.limit.reads || got.writes < tc.least {
				t.Errorf("%.2f writes and %.2f reads per pod, want at most %+v and at least %v writes", got.writes, got.reads, tc.limit, tc.least)
			}
		})
	}
}

// setBatch sets the batch size to a percentage of the replicas; empty means one by one.
func setBatch(t *testing.T, c *clients.Clients, percent string) {
	t.Helper()
	configs := c.Breakwater.AppV1alpha1().OpsConfigInfoes(v1alpha1.SystemNamespace)
	all, err := configs.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all.Items {
		config := &all.Items[i]
		if config.Spec.Type != v1alpha1.ConfigBatch {
			continue
		}
		config.Spec.Enable = percent != ""
		if percent != "" {
			config.Spec.Content = percent
		}
		if _, err := configs.Update(t.Context(), config, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("there is no OpsConfigInfo of type " + strings.ToLower(string(v1alpha1.ConfigBatch)))
}
