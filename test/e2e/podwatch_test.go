//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// podWatch notes when pods come and go.
type podWatch struct {
	mu      sync.Mutex
	moves   []podChange
	leaving map[types.UID]bool
	broken  error
}

// podChange is a pod that came or went.
type podChange struct {
	at   time.Time
	pod  string
	hash string
	came bool
}

func (m podChange) String() string {
	verb := "went"
	if m.came {
		verb = "came"
	}
	return fmt.Sprintf("%s %s %s", m.at.Format("15:04:05.000"), m.pod, verb)
}

// watchPods begins to note the pods of a namespace, those that come and go
// from now on.
func (n *namespace) watchPods(t *testing.T) *podWatch {
	t.Helper()
	list, err := n.kube.CoreV1().Pods(n.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events, err := n.kube.CoreV1().Pods(n.name).Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	w := &podWatch{leaving: map[types.UID]bool{}}
	go func() {
		for event := range events.ResultChan() {
			w.record(event, time.Now())
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if t.Context().Err() == nil {
			w.broken = fmt.Errorf("the watch ended")
		}
	}()
	t.Cleanup(events.Stop)
	return w
}

func (w *podWatch) record(event watch.Event, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := event.Object.(*corev1.Pod)
	if !ok {
		w.broken = fmt.Errorf("the watch told of %T", event.Object)
		return
	}
	m := podChange{at: at, pod: p.Name, hash: p.Labels["pod-template-hash"]}
	gone := event.Type == watch.Deleted || p.DeletionTimestamp != nil
	switch {
	case event.Type == watch.Added:
		m.came = true
	case gone && !w.leaving[p.UID]:
		w.leaving[p.UID] = true
	default:
		return
	}
	w.moves = append(w.moves, m)
}

// since returns the moves after a time, of pods whose hash is as wanted.
func (w *podWatch) since(t *testing.T, at time.Time, wanted func(podChange) bool) []podChange {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken != nil {
		t.Fatalf("watch the pods: %v", w.broken)
	}
	var out []podChange
	for _, m := range w.moves {
		if m.at.After(at) && wanted(m) {
			out = append(out, m)
		}
	}
	return out
}

func anyPodChange(podChange) bool { return true }

// observe lets time pass: what must not happen can only be waited out.
func observe(t *testing.T, duration time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	<-ctx.Done()
}

func lines(moves []podChange) string {
	out := make([]string, len(moves))
	for i, m := range moves {
		out[i] = m.String()
	}
	return strings.Join(out, "\n")
}
