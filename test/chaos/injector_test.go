//go:build e2e

package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/e2e/faultinjection"
)

// target is a component that has faults.
type target struct {
	faultinjection.Target
	// keep: only the process is killed, the pod must stay.
	keep bool
	// wake is the URL of a function that may be scaled to zero; a request
	// creates a pod.
	wake string
}

// maxDown is the maximum number of components that are down at a time. If all components
// were down all the time, no release would be judged.
const maxDown = 3

// targets are the components between a Ready pod and its verdict, those that decide
// about deletions of covered pods, and those that grant permissions.
func targets() map[string]target {
	out := map[string]target{
		"dispatcher": {Target: faultinjection.Dispatcher()},
		"ingress":    {Target: faultinjection.Ingress()},
		"filter":     {Target: faultinjection.Filter()},
		"callback":   {Target: faultinjection.Function("callback")},
		// A new pod would not have the state, which is on a volume of the pod.
		"server": {Target: faultinjection.Server(), keep: true},
	}
	for _, name := range []string{
		"controller", "webhook", "protection-controller", "protection-webhook",
		"permission-centre", "permission-controller", "permission-webhook", "init-action-server",
	} {
		out[name] = target{Target: faultinjection.Component(name)}
	}
	for _, name := range []string{"submit", "verdict", "report", "deadletter"} {
		out[name] = target{
			Target: faultinjection.Function(name),
			wake:   fmt.Sprintf("http://%s.%s.svc.cluster.local", name, v1alpha1.SystemNamespace),
		}
	}
	return out
}

// maxKills returns the maximum number of kills of each target; 0: no limit. A pod
// that must stay has its own maximum, kept, because the kubelet's restart back-off
// grows with each kill.
func maxKills(perTarget, kept int) map[string]int {
	out := map[string]int{}
	for name, t := range targets() {
		out[name] = perTarget
		if t.keep {
			out[name] = kept
		}
	}
	return out
}

// renewKept replaces the pods that must stay during this run and were restarted in an
// earlier one: their restart back-off would continue.
func renewKept(ctx context.Context, kube kubernetes.Interface) error {
	for name, t := range targets() {
		if !t.keep {
			continue
		}
		pods, err := t.Pods(ctx, kube)
		if err != nil {
			return fmt.Errorf("list the pods of %s: %w", name, err)
		}
		for i := range pods {
			if restarts(&pods[i]) == 0 {
				continue
			}
			if err := faultinjection.Delete(ctx, kube, &pods[i]); err != nil {
				return fmt.Errorf("replace the pod of %s: %w", name, err)
			}
		}
	}
	return nil
}

// injector injects the faults of a schedule.
type injector struct {
	kube     kubernetes.Interface
	seed     uint64
	interval time.Duration
	// rounds is the number of rounds; 0: no limit.
	rounds   int
	maxKills map[string]int
	targets  map[string]target
	log      func(format string, args ...any)
	// roundDone is closed when round 0 of the schedule has ended.
	roundDone chan struct{}

	pauses sync.WaitGroup
	mu     sync.Mutex
	counts map[FaultKind]map[string]int
}

// run injects faults until the rounds or ctx end.
func (i *injector) run(ctx context.Context) {
	defer i.pauses.Wait()
	for f := range Schedule(i.seed, i.interval, i.maxKills) {
		if f.Round == 1 {
			i.endRound()
		}
		if i.rounds > 0 && f.Round == i.rounds {
			return
		}
		timer := time.NewTimer(f.After)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		i.awaitFewDown(ctx)
		// A pod whose processes were just killed may still count as ready, so the fault is tried again. The pause
		// outlasts the context of the condition.
		err := await(ctx, 3*time.Minute, f.String()+" is injected", func(context.Context) error { return i.inject(ctx, f) })
		if err != nil && ctx.Err() == nil {
			i.log("%v", err)
		}
	}
}

// endRound closes roundDone.
func (i *injector) endRound() {
	select {
	case <-i.roundDone:
	default:
		close(i.roundDone)
	}
}

// awaitFewDown waits until fewer than maxDown targets are down.
func (i *injector) awaitFewDown(ctx context.Context) {
	err := await(ctx, time.Minute, "some targets are up", func(ctx context.Context) error {
		var down []string
		for _, name := range slices.Sorted(maps.Keys(i.targets)) {
			t := i.targets[name]
			pods, err := t.Pods(ctx, i.kube)
			if err != nil {
				return err
			}
			if t.wake == "" && !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return ready(&p) }) {
				down = append(down, name)
			}
		}
		if len(down) >= maxDown {
			return fmt.Errorf("%v are down", down)
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		i.log("%v", err)
	}
}

// inject injects a fault into one or all of the ready pods of a target.
func (i *injector) inject(ctx context.Context, f Fault) error {
	t := i.targets[f.Target]
	pods, err := i.readyPods(ctx, t)
	if err != nil {
		return err
	}
	if n := f.Replica % len(pods); !f.All {
		pods = pods[n : n+1]
	}
	for n := range pods {
		var how string
		if f.Kind == Pause {
			how, err = i.pause(ctx, &pods[n], f.For)
		} else {
			how, err = i.kill(ctx, t, &pods[n])
		}
		if err != nil {
			return fmt.Errorf("pod %s: %w", pods[n].Name, err)
		}
		i.log("%s (%s): %s", f, pods[n].Name, how)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.counts[f.Kind] == nil {
		i.counts[f.Kind] = map[string]int{}
	}
	i.counts[f.Kind][f.Target]++
	return nil
}

// readyPods waits until a target has ready pods, and wakes it if it is scaled to
// zero.
func (i *injector) readyPods(ctx context.Context, t target) (found []corev1.Pod, err error) {
	err = await(ctx, 2*time.Minute, t.String()+" has a ready pod", func(ctx context.Context) error {
		pods, err := t.Pods(ctx, i.kube)
		if err != nil {
			return err
		}
		found = slices.DeleteFunc(pods, func(p corev1.Pod) bool { return !ready(&p) })
		if len(found) > 0 {
			return nil
		}
		return errors.Join(errors.New("no pod is ready"), wake(ctx, t.wake))
	})
	return found, err
}

// wake sends a request to a function and ignores the answer.
func wake(ctx context.Context, url string) error {
	if url == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close())
}

// kill kills a pod and returns the method.
func (i *injector) kill(ctx context.Context, t target, pod *corev1.Pod) (string, error) {
	how, err := faultinjection.Kill(ctx, i.kube, pod)
	if err == nil && !t.keep && restarts(pod) > 0 {
		// The pod was killed before. A new pod avoids the kubelet's back-off, which
		// is not under test.
		return how + ", and replaced", faultinjection.Delete(ctx, i.kube, pod)
	}
	return how, err
}

// pause pauses a pod in the background, until the time is over or ctx ends.
func (i *injector) pause(ctx context.Context, pod *corev1.Pod, duration time.Duration) (string, error) {
	resume, err := faultinjection.Pause(pod)
	if resume == nil {
		return "", err
	}
	i.pauses.Go(func() {
		timer := time.NewTimer(duration)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		if err := resume(); err != nil {
			i.log("resume %s: %v", pod.Name, err)
		}
	})
	return "SIGSTOP", err
}

func restarts(pod *corev1.Pod) (n int32) {
	for _, c := range pod.Status.ContainerStatuses {
		n = max(n, c.RestartCount)
	}
	return n
}

// count returns the number of faults of a kind of each target.
func (i *injector) count(kind FaultKind) map[string]int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return maps.Clone(i.counts[kind])
}
