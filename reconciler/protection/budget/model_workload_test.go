package budget

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/internal/budget"
)

// modelWorkload is a model of the pods of one workload, of its controller and of the
// kubelets.
type modelWorkload struct {
	api *modelAPI
	set *appsv1.ReplicaSet
	// reusesNames says that the workload names its pods as a StatefulSet does, and
	// replaces a pod only after its end.
	reusesNames bool
	created     int
	// vacant are the lost pods without a replacement.
	vacant []vacancy
	// replaces says which pods replace a pod that was deleted while it was available.
	replaces map[types.UID]bool
	// disrupted is how many pods are unavailable because of deletions: the deleted
	// pods that were available and whose replacements have not become Ready.
	disrupted int32
}

// vacancy is a lost pod.
type vacancy struct {
	name string
	// disruption reports whether its deletion is part of disrupted.
	disruption bool
}

func newModelWorkload(a *modelAPI, replicas int32, reusesNames bool) *modelWorkload {
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-1", UID: "uid-web-1"}, Spec: appsv1.ReplicaSetSpec{Replicas: &replicas}}
	w := &modelWorkload{api: a, set: set, reusesNames: reusesNames, replaces: map[types.UID]bool{}}
	for i := range replicas {
		w.create(vacancy{name: fmt.Sprintf("web-1-%d", i)})
	}
	for _, p := range w.pods() {
		w.setReady(p, true)
	}
	return w
}

// pods returns the pods by name.
func (w *modelWorkload) pods() []*corev1.Pod {
	names := make([]string, 0, len(w.api.pods))
	for name := range w.api.pods {
		names = append(names, name)
	}
	slices.Sort(names)
	pods := make([]*corev1.Pod, len(names))
	for i, name := range names {
		pods[i] = w.api.pods[name]
	}
	return pods
}

func (w *modelWorkload) create(v vacancy) {
	w.created++
	name := fmt.Sprintf("web-1-%d", w.created)
	if w.reusesNames {
		name = v.name
	}
	p := newPod(0, controlledBy("ReplicaSet", w.set.Name), func(p *corev1.Pod) {
		p.Name, p.UID = name, types.UID(fmt.Sprintf("uid-%d", w.created))
		p.Status.Conditions = nil
	})
	w.replaces[p.UID] = v.disruption
	w.api.writePod(p)
}

// replace creates the replacement of a lost pod.
func (w *modelWorkload) replace() bool {
	for i, v := range w.vacant {
		if _, exists := w.api.pods[v.name]; exists && w.reusesNames {
			continue
		}
		w.vacant = slices.Delete(w.vacant, i, i+1)
		w.create(v)
		return true
	}
	return false
}

func ready(p *corev1.Pod) bool { return len(p.Status.Conditions) > 0 }

// setReady changes whether a pod is Ready. The first time it ends the disruption that
// the pod replaces.
func (w *modelWorkload) setReady(p *corev1.Pod, now bool) {
	p = p.DeepCopy()
	if p.Status.Conditions = nil; now {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		if w.replaces[p.UID] {
			w.replaces[p.UID] = false
			w.disrupted--
		}
	}
	w.api.writePod(p)
}

// delete carries out the deletion of a pod.
func (w *modelWorkload) delete(p *corev1.Pod, force bool) {
	if p.DeletionTimestamp == nil {
		v := vacancy{p.Name, w.replaces[p.UID]}
		if budget.Healthy(p) {
			v.disruption = true
			w.disrupted++
		}
		w.vacant = append(w.vacant, v)
		if !force {
			p = p.DeepCopy()
			p.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			w.api.writePod(p)
		}
	}
	if force {
		w.api.removePod(p.Name)
	}
}
