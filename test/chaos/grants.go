package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/test/provider"
	"github.com/breakwater-dev/breakwater/test/provider/setup"
)

// Grants compares the grants of a provider with the pods of a run.
type Grants struct {
	mu sync.Mutex
	// pods has the UIDs of all pods of the run, and their names.
	pods map[string]string
}

// NewGrants returns Grants of a run without pods.
func NewGrants() *Grants { return &Grants{pods: map[string]string{}} }

// Watch observes the pods of a namespace until ctx ends.
func (g *Grants) Watch(ctx context.Context, kube kubernetes.Interface, namespace string) error {
	factory := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithNamespace(namespace))
	observe := func(obj any) {
		if pod, ok := obj.(*corev1.Pod); ok {
			g.Observe(pod)
		}
	}
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: observe, UpdateFunc: func(_, obj any) { observe(obj) }})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return nil
}

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

// Check returns an error unless that many pods exist, all are available, and exactly these have a grant.
func (g *Grants) Check(ctx context.Context, cluster *setup.Cluster, namespace string, pods int) error {
	list, err := cluster.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	want := map[string]string{}
	for i := range list.Items {
		if pod := &list.Items[i]; available(pod) {
			want[string(pod.UID)] = pod.Status.PodIP
		}
	}
	if len(list.Items) != pods || len(want) != pods {
		return fmt.Errorf("%d pods exist, %d are available", len(list.Items), len(want))
	}
	stats, err := cluster.ProviderStats(ctx)
	if err != nil {
		return err
	}
	if faults := g.Violations(want, stats.Current); len(faults) > 0 {
		return errors.New(strings.Join(faults, "\n\t"))
	}
	return nil
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
