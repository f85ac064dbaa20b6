package server

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/race"
)

// maxMemoryOfACall bounds the memory of a waiting call and of its client, in bytes. The
// memory limit in config/permission/600-init-action-server.yaml is enough for more than 3000 of them.
const maxMemoryOfACall = 160 << 10

func TestAThousandPodsWaitAndEachGetsItsAnswer(t *testing.T) {
	const pods = 1000 / race.Slowdown
	w := newFixtureAt(t, clock.RealClock{}, nil)
	w.centre.decide = func(api.ApplicationRequest, int) (api.State, error) { return api.Applying, nil }
	for n := range pods {
		p := newPod(func(p *corev1.Pod) { p.Name, p.UID = fmt.Sprintf("web-%d", n), types.UID(fmt.Sprintf("uid-%d", n)) })
		if err := w.kube.Tracker().Add(p); err != nil {
			t.Fatal(err)
		}
		w.updatePod(p)
		w.tokens[p.Name] = bound(p.Name, string(p.UID))
	}
	before := usedMemory()
	type answered struct {
		pod    int
		status int
		answer protocol.Answer
	}
	answers := make(chan answered, pods)
	for n := range pods {
		go func() {
			status, answer := w.send(t.Context(), http.MethodPost, protocol.AuthorizePath, fmt.Sprintf("web-%d", n), orders)
			answers <- answered{n, status, answer}
		}()
	}
	w.await("all pods wait for the permission", func() bool { return w.hub.Count() == pods && w.centre.waiting() == pods })
	used := usedMemory() - before
	t.Logf("%d calls need %d KiB each", pods, used/pods>>10)
	if used > pods*maxMemoryOfACall && race.Slowdown == 1 {
		t.Errorf("a call needs %d KiB, want at most %d", used/pods>>10, maxMemoryOfACall>>10)
	}
	if len(answers) > 0 {
		t.Fatalf("a call ended although its permission is undecided: %+v", <-answers)
	}

	w.centre.set(api.Granted)
	var granted []int
	for range pods {
		select {
		case a := <-answers:
			if a.status != http.StatusOK || a.answer.State != protocol.Granted {
				t.Errorf("pod %d: %d %+v", a.pod, a.status, a.answer)
			}
			granted = append(granted, a.pod)
		case <-time.After(2 * time.Minute):
			t.Fatalf("%d of %d calls have an answer", len(granted), pods)
		}
	}
	slices.Sort(granted)
	if n := len(slices.Compact(granted)); n != pods || w.centre.attempts() != pods {
		t.Errorf("%d pods have an answer after %d requests, want %d", n, w.centre.attempts(), pods)
	}
	w.await("no call is open", func() bool { return w.hub.Count() == 0 })
	w.mu.Lock()
	defer w.mu.Unlock()
	reported := 0
	for _, c := range w.conditions {
		if c.Reason == podmeta.ReasonPermissionGranted {
			reported++
		}
	}
	if reported != pods {
		t.Errorf("%d pods are reported as granted, want %d", reported, pods)
	}
}

// usedMemory returns the memory of live objects and stacks, in bytes.
func usedMemory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

func (w *fixture) await(what string, holds func() bool) {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.t.Context(), 10*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}
