//go:build e2e

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/breakwater-dev/breakwater/test/e2e/disruption"
)

// target is a part that is killed repeatedly.
type target struct {
	name string
	part disruption.Part
	// most is the maximum number of kills; 0: no limit.
	most int
	// keep: only the process is killed, the pod must stay.
	keep bool
	// sleeps: it is a function that may be scaled to zero.
	sleeps bool
}

// maxDown is the maximum number of parts that are down at a time. If all parts
// were down all the time, no release would be judged.
const maxDown = 3

// targets are all parts between a Ready pod and its verdict.
func targets(killsPerPart, serverKills int) []target {
	out := []target{
		{name: "controller", part: disruption.Component("controller")},
		{name: "webhook", part: disruption.Component("webhook")},
		{name: "submit", part: disruption.Function("submit"), sleeps: true},
		{name: "verdict", part: disruption.Function("verdict"), sleeps: true},
		{name: "report", part: disruption.Function("report"), sleeps: true},
		{name: "callback", part: disruption.Function("callback")},
		{name: "deadletter", part: disruption.Function("deadletter"), sleeps: true},
		{name: "dispatcher", part: disruption.Dispatcher()},
		{name: "ingress", part: disruption.Ingress()},
		{name: "filter", part: disruption.Filter()},
	}
	for i := range out {
		out[i].most = killsPerPart
	}
	// Its state is on a volume of its pod. The kubelet's restart back-off
	// grows, so it is killed only a few times.
	return append(out, target{name: "server", part: disruption.Server(), most: serverKills, keep: true})
}

// injector kills the targets one at a time in random order with random pauses.
// Each target is killed once before any is killed twice.
type injector struct {
	kube    kubernetes.Interface
	rand    *rand.Rand
	pause   time.Duration // mean
	log     func(format string, args ...any)
	targets []target

	mu     sync.Mutex
	killed map[string]int
}

// run kills until ctx ends.
func (k *injector) run(ctx context.Context) {
	for {
		for _, i := range k.rand.Perm(len(k.targets)) {
			timer := time.NewTimer(k.pause/2 + time.Duration(k.rand.Int64N(int64(k.pause))))
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
			if t := k.targets[i]; t.most == 0 || k.kills()[t.name] < t.most {
				k.awaitFewDown(ctx)
				k.kill(ctx, t)
			}
		}
	}
}

// awaitFewDown waits until fewer than maxDown parts are down.
func (k *injector) awaitFewDown(ctx context.Context) {
	err := await(ctx, time.Minute, "some parts are up", func(ctx context.Context) error {
		var down []string
		for _, t := range k.targets {
			pods, err := t.part.Pods(ctx, k.kube)
			if err != nil {
				return err
			}
			if !t.sleeps && !slices.ContainsFunc(pods, ready) {
				down = append(down, t.name)
			}
		}
		if len(down) >= maxDown {
			return fmt.Errorf("%v are down", down)
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		k.log("%v", err)
	}
}

func ready(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// kill kills one or all of the ready pods of a target. A part that is down or
// scaled to zero has none.
func (k *injector) kill(ctx context.Context, t target) {
	pods, err := t.part.Pods(ctx, k.kube)
	if err != nil {
		k.log("find %s: %v", t.name, err)
		return
	}
	all := k.rand.IntN(2) == 0
	for i := range pods {
		pod := &pods[i]
		if !ready(*pod) {
			continue
		}
		how, err := disruption.Kill(ctx, k.kube, pod)
		if err == nil && !t.keep && restarts(pod) > 0 {
			// It was killed before. A new pod avoids the kubelet's back-off,
			// which is not under test.
			how += ", and replaced"
			err = disruption.Delete(ctx, k.kube, pod)
		}
		if err != nil {
			k.log("kill %s: %v", pod.Name, err)
			continue
		}
		k.log("kill %s (%s): %s", t.name, pod.Name, how)
		k.mu.Lock()
		k.killed[t.name]++
		k.mu.Unlock()
		if !all {
			return
		}
	}
}

func restarts(pod *corev1.Pod) (n int32) {
	for _, c := range pod.Status.ContainerStatuses {
		n = max(n, c.RestartCount)
	}
	return n
}

// kills returns the number of kills of each target.
func (k *injector) kills() map[string]int {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make(map[string]int, len(k.killed))
	for name, n := range k.killed {
		out[name] = n
	}
	return out
}
