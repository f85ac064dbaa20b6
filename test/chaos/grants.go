package chaos

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/test/provider"
)

// Grants compares the grants of a provider with the pods of a run.
type Grants struct {
	mu sync.Mutex
	// pods has the UIDs of all pods of the run, and their names.
	pods map[string]string
}

// NewGrants returns Grants of a run without pods.
func NewGrants() *Grants { return &Grants{pods: map[string]string{}} }

// Observe records a pod of the run.
func (g *Grants) Observe(pod *corev1.Pod) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pods[string(pod.UID)] = pod.Name
}

// Len returns the number of pods.
func (g *Grants) Len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.pods)
}

// Violations returns how the grants differ from exactly one grant for each pod in want
// (IP address by UID). It ignores grants of pods of other runs.
func (g *Grants) Violations(want map[string]string, grants []provider.Entry) (out []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	count := map[string]int{}
	for _, e := range grants {
		name, ours := g.pods[e.Pod]
		if !ours {
			continue
		}
		count[e.Pod]++
		ip, wanted := want[e.Pod]
		switch {
		case !wanted:
			out = append(out, fmt.Sprintf("pod %s does not exist and has a grant for %s", name, e.IP))
		case ip != e.IP:
			out = append(out, fmt.Sprintf("pod %s at %s has a grant for %s", name, ip, e.IP))
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(want)) {
		if count[uid] != 1 {
			out = append(out, fmt.Sprintf("pod %s has %d grants, want 1", g.pods[uid], count[uid]))
		}
	}
	return out
}
