//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"knative.dev/pkg/hash"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/leaderelection"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/e2e/faultinjection"
	"github.com/breakwater-dev/breakwater/test/e2e/serverdouble"
)

const (
	// reacquireTimeout bounds the time until a Lease without a holder is acquired.
	reacquireTimeout = 5 * time.Second
	// buckets is the value in config-leader-election.
	buckets = 2
)

// Two controllers share the work, and one is enough.
func TestTwoControllers(t *testing.T) {
	e := newEnvironment(t)
	configure(t, e)
	runSequentially(t, e, []spec{
		{"both controllers lead a bucket and reconcile its objects", bothControllersReconcile},
		{"when one controller is killed during a release, the other completes it and finds a namespace that is opted in meanwhile", leaderKilled},
	})
	e.awaitDeployed(t, system, "controller")
}

// bothControllersReconcile: each controller labels some pods. The former leader of a bucket goes on until it
// notices that another one leads it, and may label all pods of a release before, so there are more releases.
func bothControllersReconcile(t *testing.T, e *environment) {
	e.shareLeases(t)
	before := e.finishedPods(t)
	n := e.optedInNamespace(t)
	const replicas = 14
	after, working := before, 0
	for i := range 3 {
		name := fmt.Sprintf("web%d", i)
		n.create(t, builder.Deployment(name, replicas, builder.Simulated))
		n.awaitPhase(t, rolloutTimeout, name, v1alpha1.ReleaseSuccess)
		n.awaitClaims(t, shortTimeout, name)
		await(t, shortTimeout, "all pods are labeled", func(context.Context) error {
			after, working = e.finishedPods(t), 0
			labeled := 0
			for pod, count := range after {
				if count > before[pod] {
					working++
				}
				labeled += count - before[pod]
			}
			if labeled < (i+1)*replicas {
				return fmt.Errorf("before %v, after %v", before, after)
			}
			return nil
		})
		if working == 2 {
			return
		}
	}
	t.Errorf("%d controllers have labeled pods, want 2: before %v, after %v", working, before, after)
}

// leaderKilled: the leader of the release is killed while a batch waits for its
// verdict, and is not replaced. No leader receives the event of a namespace that is opted in
// then, so the next leader has to find the namespace when it starts.
func leaderKilled(t *testing.T, e *environment) {
	e.shareLeases(t)
	n := e.optedInNamespace(t)
	n.setChecks(t, double.CheckRule{Match: batch(4, double.Post), Then: double.Behaviour{Never: true}})
	n.create(t, builder.Deployment("web", 6, builder.Simulated))
	waiting := n.awaitBatch(t, rolloutTimeout, "web", 4, "waits for its POST verdict", awaitsPostVerdict)
	c, err := n.current(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	lease, leader := e.leaderOf(t, types.NamespacedName{Namespace: n.name, Name: c.Name})
	optedInLater := e.notOptedInNamespace(t)
	names := e.namesLedBy(t, optedInLater.name, leader)
	for _, name := range names {
		optedInLater.create(t, builder.Deployment(name, 1, builder.Simulated))
	}
	for _, name := range names {
		optedInLater.awaitAvailable(t, name)
	}

	e.killWithoutReplacement(t, leader)
	n.run(t, "label", "namespace", optedInLater.name, v1alpha1.NamespaceLabel+"="+v1alpha1.NamespaceEnabled)
	if status := post(t, callback(t, c.Spec.OrderID, waiting.Status.ChangePodID, "fail"), serverdouble.Token); status != http.StatusOK {
		t.Errorf("callback status %d, want 200: the verdict is stored", status)
	}
	await(t, recoveryTimeout, "the other controller leads", func(context.Context) error {
		if got := e.leaseHolder(t, lease); got == "" || got == leader {
			return fmt.Errorf("%s is held by %q", lease, got)
		}
		return nil
	})
	n.awaitFailedBatch(t, recoveryTimeout, 4)
	n.setChecks(t)
	n.repair(t, "web", "v2")
	optedInLater.checkBaselinesAndReleases(t, names)
	n.awaitPhase(t, recoveryTimeout, "web", v1alpha1.ReleaseSuccess)
	n.awaitDeployment(t, shortTimeout, "web", "is not suspended", isNotSuspended)
	n.awaitClaims(t, shortTimeout, "web")
}

// namesLedBy returns names of three Deployments that a controller leads, and of one that the
// other controller leads.
func (e *environment) namesLedBy(t *testing.T, namespace, leader string) []string {
	t.Helper()
	var led, others []string
	for i := 0; len(led) < 3 || len(others) < 1; i++ {
		name := fmt.Sprintf("web%d", i)
		if _, by := e.leaderOf(t, types.NamespacedName{Namespace: namespace, Name: name}); by == leader {
			led = append(led, name)
		} else {
			others = append(others, name)
		}
	}
	return append(led[:3], others[0])
}

// checkBaselinesAndReleases checks that running workloads become baselines, and then that their
// releases are judged.
func (n *namespace) checkBaselinesAndReleases(t *testing.T, names []string) {
	t.Helper()
	for _, name := range names {
		if c := n.awaitPhase(t, recoveryTimeout, name, v1alpha1.ReleaseSuccess); c.Spec.Attempt != 0 {
			t.Errorf("the baseline of %s is attempt %d", name, c.Spec.Attempt)
		}
	}
	for _, name := range names {
		n.release(t, name, "v2")
	}
	for _, name := range names {
		n.awaitPhase(t, recoveryTimeout, name, v1alpha1.ReleaseSuccess)
		n.awaitClaims(t, shortTimeout, name)
	}
}

// leases returns the Leases of the controllers.
func (e *environment) leases(ctx context.Context) ([]coordinationv1.Lease, error) {
	list, err := e.kube.CoordinationV1().Leases(system).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	names := leaseNames()
	return slices.DeleteFunc(list.Items, func(l coordinationv1.Lease) bool { return !names.Has(l.Name) }), nil
}

// leaseNames are the names of the Leases of the controllers.
func leaseNames() sets.Set[string] {
	names := sets.New[string]()
	for i := range uint32(buckets) {
		names.Insert(leaderelection.LeaseName("controller", i, buckets))
	}
	return names
}

// holderOf returns the pod that holds a Lease; empty without a holder.
func holderOf(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	pod, _, _ := strings.Cut(*l.Spec.HolderIdentity, "_")
	return pod
}

// shareLeases waits until each controller holds one of the two Leases. The
// first controller to start acquires both, so shareLeases removes the holder of one of them.
func (e *environment) shareLeases(t *testing.T) {
	t.Helper()
	e.awaitDeployed(t, system, "controller")
	var removed time.Time
	await(t, recoveryTimeout, "both controllers hold a Lease", func(ctx context.Context) error {
		all, err := e.leases(ctx)
		if err != nil {
			return err
		}
		pods, err := e.pods(ctx, component("controller"))
		if err != nil {
			return err
		}
		live := sets.New[string]()
		for i := range pods {
			live.Insert(pods[i].Name)
		}
		holders := sets.New[string]()
		for i := range all {
			holder := holderOf(&all[i])
			if !live.Has(holder) {
				return fmt.Errorf("%s is held by %q", all[i].Name, holder)
			}
			holders.Insert(holder)
		}
		if len(holders) == 2 && len(live) == 2 {
			return nil
		}
		if time.Since(removed) > reacquireTimeout {
			removed = time.Now()
			_, err := e.kube.CoordinationV1().Leases(system).Patch(ctx, leaderelection.LeaseName("controller", 0, buckets), types.MergePatchType,
				[]byte(`{"spec":{"holderIdentity":""}}`), metav1.PatchOptions{})
			if err != nil {
				return err
			}
		}
		return fmt.Errorf("%d Leases are held by %v", len(all), sets.List(holders))
	})
}

// leaderOf returns the Lease of the bucket of a key, and its holder.
func (e *environment) leaderOf(t *testing.T, key types.NamespacedName) (lease, pod string) {
	t.Helper()
	lease = hash.NewBucketSet(leaseNames()).Owner(key.String())
	return lease, e.leaseHolder(t, lease)
}

func (e *environment) leaseHolder(t *testing.T, lease string) string {
	t.Helper()
	l, err := e.kube.CoordinationV1().Leases(system).Get(t.Context(), lease, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return holderOf(l)
}

// killWithoutReplacement kills a controller and scales the Deployment to one
// pod until the test ends.
func (e *environment) killWithoutReplacement(t *testing.T, name string) {
	t.Helper()
	scale := func(ctx context.Context, replicas int) error {
		_, err := e.kube.AppsV1().Deployments(system).Patch(ctx, "controller", types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{})
		return err
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), shortTimeout)
		defer cancel()
		if err := scale(ctx, 2); err != nil {
			t.Errorf("scale the controller to two replicas: %v", err)
		}
	})
	// The ReplicaSet controller removes the pod with the lower deletion cost.
	pod, err := e.kube.CoreV1().Pods(system).Patch(t.Context(), name, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"-100"}}}`, corev1.PodDeletionCost), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	how, err := faultinjection.Kill(t.Context(), e.kube, pod)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s %s: %s", time.Now().Format("15:04:05.000"), name, how)
	if err := scale(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	await(t, rolloutTimeout, name+" is deleted", func(ctx context.Context) error {
		pod, err := e.kube.CoreV1().Pods(system).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrs.IsNotFound(err):
			return nil
		case err != nil:
			return err
		case pod.DeletionTimestamp != nil:
			return nil
		}
		return fmt.Errorf("phase is %s", pod.Status.Phase)
	})
}

// finishedPods returns, per controller, its metric of pods labeled as finished.
func (e *environment) finishedPods(t *testing.T) map[string]int {
	t.Helper()
	pods, err := e.pods(t.Context(), component("controller"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for i := range pods {
		raw, err := e.kube.CoreV1().Pods(system).ProxyGet("http", pods[i].Name, "9090", "metrics", nil).DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		out[pods[i].Name] = 0
		for line := range strings.Lines(string(raw)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
			if !strings.HasPrefix(name, "breakwater_pods_finished_total") {
				continue
			}
			count, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			out[pods[i].Name] += int(count)
		}
	}
	return out
}
