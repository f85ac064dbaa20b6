package chaos

import (
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Availability checks that deletions leave a minimum of pods available, and
// that a pod is deleted only if a request for it may have been admitted. It
// gets the events of a watch in their order.
type Availability struct {
	mu        sync.Mutex
	minimum   int
	available map[types.UID]bool
	// requests is the number of requests for each pod that may have been
	// admitted.
	requests map[types.UID]int
	lowest   int
	faults   []string
}

// NewAvailability returns a check without a minimum; see Require.
func NewAvailability() *Availability {
	return &Availability{available: map[types.UID]bool{}, requests: map[types.UID]int{}}
}

// Require sets the minimum of available pods. It is called when the budget is in
// effect.
func (a *Availability) Require(minimum int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.minimum, a.lowest = minimum, len(a.available)
}

// Request records a request for a pod. It is called before the request is sent.
func (a *Availability) Request(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests[uid]++
}

// Denied records that the last request for a pod was certainly not admitted.
func (a *Availability) Denied(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests[uid]--
}

// Observe records the state of a pod; deleted means that the pod no longer exists.
func (a *Availability) Observe(pod *corev1.Pod, deleted bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.available[pod.UID]
	if !deleted && available(pod) {
		a.available[pod.UID] = true
		return
	}
	delete(a.available, pod.UID)
	if !was || (!deleted && pod.DeletionTimestamp == nil) {
		return // it was counted before, or no request made it unavailable
	}
	left := len(a.available)
	a.lowest = min(a.lowest, left)
	if left < a.minimum {
		a.faults = append(a.faults, fmt.Sprintf("after the deletion of pod %s %d pods are available, want at least %d", pod.Name, left, a.minimum))
	}
	if a.requests[pod.UID] <= 0 {
		a.faults = append(a.faults, fmt.Sprintf("pod %s was deleted, but no request for it was admitted", pod.Name))
	}
}

// Lowest returns the lowest number of available pods after a deletion.
func (a *Availability) Lowest() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lowest
}

// Violations returns the violations.
func (a *Availability) Violations() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.faults)
}

// available reports whether a pod counts as available.
func available(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning && ready(pod)
}

// ready reports whether the condition Ready of a pod is True.
func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
