//go:build e2e

package permission

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/e2e/faultinjection"
	"github.com/breakwater-dev/breakwater/test/provider"
)

// kills are the components in alphabetical order, once per kill, so that a seed
// repeats a run. There are few kills, because kubelets back off restarts.
var kills = []string{
	"init-action-server", "init-action-server", "init-action-server", "init-action-server",
	"permission-centre", "permission-centre", "permission-controller", "permission-controller", "permission-webhook", "permission-webhook",
}

// killComponents kills components at random times until all kills are done or ctx
// ends. The result is the number of kills of each component.
func killComponents(ctx context.Context, t *testing.T, seed uint64) (finished <-chan map[string]int) {
	order := slices.Clone(kills)
	random := rand.New(rand.NewPCG(seed, seed))
	random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	done := make(chan map[string]int, 1)
	go func() {
		killed := map[string]int{}
		defer func() { done <- killed }()
		for _, component := range order {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Duration(500+random.IntN(2500)) * time.Millisecond):
			}
			choice := random.IntN(1 << 16)
			pods, err := faultinjection.Component(component).Pods(ctx, testCluster.Kube)
			if err != nil || len(pods) == 0 {
				t.Logf("%s: %d pods, %v", component, len(pods), err)
				continue
			}
			// Kill processes instead of deleting pods, because a deleted pod shuts down
			// gracefully.
			n, err := faultinjection.KillProcesses(&pods[choice%len(pods)])
			t.Logf("%s: %d processes killed, %v", component, n, err)
			killed[component] += n
		}
	}()
	return done
}

// Server, centre, controller and webhook are killed at random points while pods start
// and end. The provider must have one grant for each existing pod and none for a
// deleted pod.
func TestKillsAtRandomPointsNeitherLoseNorDuplicateGrants(t *testing.T) {
	n := newNamespace(t, enabled)
	setFaults(t, provider.Faults{Delay: 50, DecideAfter: 700})
	before := providerRecords(t)
	seed := uint64(time.Now().UnixNano())
	if repeat, err := strconv.ParseUint(os.Getenv("KILL_SEED"), 10, 64); err == nil {
		seed = repeat
	}
	t.Logf("KILL_SEED=%d repeats the order of the kills", seed)
	n.mustApply(t, deployment("web", "web", 12))
	finished := killComponents(t.Context(), t, seed)
	eventually(t, 6*time.Minute, "all pods are Ready", func() error {
		ready := 0
		for _, p := range n.pods(t) {
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					ready++
				}
			}
		}
		if ready != 12 {
			return fmt.Errorf("%d of 12", ready)
		}
		return nil
	})
	killed := <-finished
	for _, component := range slices.Compact(slices.Clone(kills)) {
		if killed[component] == 0 {
			t.Errorf("no process of %s was killed", component)
		}
	}
	pods := n.pods(t)
	for i := range pods {
		if got := grantsOf(t, &pods[i]); len(got) != 1 || got[0].IP != pods[i].Status.PodIP || !podmeta.HasFinalizer(&pods[i]) {
			t.Errorf("pod %s at %s: grants %v, finalizers %v", pods[i].Name, pods[i].Status.PodIP, got, pods[i].Finalizers)
		}
	}
	if now := providerRecords(t); now.Duplicates != before.Duplicates {
		t.Errorf("%d duplicate grants", now.Duplicates-before.Duplicates)
	}
	n.run(t, "scale", "deployment", "web", "--replicas=0")
	eventually(t, 5*time.Minute, "the provider has no grants for deleted pods", func() error {
		left := 0
		for i := range pods {
			left += len(grantsOf(t, &pods[i]))
		}
		if there := len(n.pods(t)); left+there > 0 {
			return fmt.Errorf("%d grants, %d pods", left, there)
		}
		return nil
	})
}
