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

// podWatch records when pods are created and deleted.
type podWatch struct {
	mu      sync.Mutex
	changes []podChange
	deleted map[types.UID]bool
	broken  error
}

// podChange is the creation or deletion of a pod.
type podChange struct {
	at      time.Time
	pod     string
	hash    string
	created bool
}

func (m podChange) String() string {
	verb := "deleted"
	if m.created {
		verb = "created"
	}
	return fmt.Sprintf("%s %s %s", m.at.Format("15:04:05.000"), m.pod, verb)
}

// watchPods starts to record the pods of a namespace that are created and
// deleted.
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
	w := &podWatch{deleted: map[types.UID]bool{}}
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
		w.broken = fmt.Errorf("the watch returned %T", event.Object)
		return
	}
	m := podChange{at: at, pod: p.Name, hash: p.Labels["pod-template-hash"]}
	deleted := event.Type == watch.Deleted || p.DeletionTimestamp != nil
	switch {
	case event.Type == watch.Added:
		m.created = true
	case deleted && !w.deleted[p.UID]:
		w.deleted[p.UID] = true
	default:
		return
	}
	w.changes = append(w.changes, m)
}

// since returns the wanted changes after a time.
func (w *podWatch) since(t *testing.T, at time.Time, wanted func(podChange) bool) []podChange {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken != nil {
		t.Fatalf("watch the pods: %v", w.broken)
	}
	var out []podChange
	for _, m := range w.changes {
		if m.at.After(at) && wanted(m) {
			out = append(out, m)
		}
	}
	return out
}

func anyPodChange(podChange) bool { return true }

// observe waits for a duration in which an event must not happen.
func observe(t *testing.T, duration time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	<-ctx.Done()
}

func lines(changes []podChange) string {
	out := make([]string, len(changes))
	for i, m := range changes {
		out[i] = m.String()
	}
	return strings.Join(out, "\n")
}
