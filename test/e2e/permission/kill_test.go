//go:build e2e

package permission

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	names "github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/e2e/disruption"
	"github.com/breakwater-dev/breakwater/test/provider"
)

// parts are killed at random, so many times each: kubelets let a container that
// dies often wait longer and longer.
var parts = map[string]int{"init-action-server": 4, "permission-centre": 2, "permission-controller": 2, "permission-webhook": 2}

// killing kills parts until all deaths are died or ctx ends.
func killing(ctx context.Context, t *testing.T, seed uint64) (died <-chan struct{}) {
	var deaths []string
	for part, n := range parts {
		for range n {
			deaths = append(deaths, part)
		}
	}
	random := rand.New(rand.NewPCG(seed, seed))
	random.Shuffle(len(deaths), func(i, j int) { deaths[i], deaths[j] = deaths[j], deaths[i] })
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, part := range deaths {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Duration(500+random.IntN(2500)) * time.Millisecond):
			}
			pods, err := disruption.Component(part).Pods(ctx, bed.Kube)
			if err != nil || len(pods) == 0 {
				continue
			}
			// One that waits to be started again is let be: to delete the centre's
			// would delete its books.
			killed, err := disruption.KillProcesses(&pods[random.IntN(len(pods))])
			t.Logf("%s: %d processes killed, %v", part, killed, err)
		}
	}()
	return done
}

// Server, centre, controller and webhook are killed at random points while pods
// start and go: the provider's books have one grant for each pod that lives,
// none twice, and none for a pod that is gone.
func TestKillsAtRandomPointsLoseAndDoubleNothing(t *testing.T) {
	n := newNamespace(t, enabled)
	faults(t, provider.Faults{Delay: 50, DecideAfter: 700})
	before := books(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	n.applied(t, deployment("web", "web", 12))
	died := killing(t.Context(), t, seed)
	until(t, 6*time.Minute, "all pods are Ready", func() error {
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
	<-died
	pods := n.pods(t)
	for i := range pods {
		if got := held(t, &pods[i]); len(got) != 1 || got[0].IP != pods[i].Status.PodIP || !names.HasFinalizer(&pods[i]) {
			t.Errorf("pod %s at %s: the provider has %v, finalizers %v", pods[i].Name, pods[i].Status.PodIP, got, pods[i].Finalizers)
		}
	}
	if now := books(t); now.Duplicates != before.Duplicates {
		t.Errorf("%d grants were given twice", now.Duplicates-before.Duplicates)
	}
	n.run(t, "scale", "deployment", "web", "--replicas=0")
	until(t, 5*time.Minute, "nothing is held for pods that are gone", func() error {
		left := 0
		for i := range pods {
			left += len(held(t, &pods[i]))
		}
		if there := len(n.pods(t)); left+there > 0 {
			return fmt.Errorf("%d grants, %d pods", left, there)
		}
		return nil
	})
}
