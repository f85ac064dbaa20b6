package budget

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// newPDB returns a PodDisruptionBudget that selects the pod of newPod.
func newPDB(name string, change func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Generation: 2},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status:     policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, DisruptionsAllowed: 1, CurrentHealthy: 3, DesiredHealthy: 2},
	}
	if change != nil {
		change(b)
	}
	return b
}

// The cases of Create and checkAndDecrement in pkg/registry/core/pod/storage/eviction.go of Kubernetes.
func TestAnEvictionIsRefusedLikeByTheAPIServer(t *testing.T) {
	unready := func(p *corev1.Pod) { p.Status.Conditions = nil }
	full := func(b *policyv1.PodDisruptionBudget) {
		b.Status.DisruptionsAllowed, b.Status.CurrentHealthy, b.Status.DesiredHealthy = 0, 2, 2
	}
	short := func(b *policyv1.PodDisruptionBudget) {
		full(b)
		b.Status.CurrentHealthy = 1
	}
	unsynced := func(b *policyv1.PodDisruptionBudget) { b.Generation++ }
	for name, tc := range map[string]struct {
		pod  func(*corev1.Pod)
		pdbs []*policyv1.PodDisruptionBudget
		want int32
	}{
		"none":                                 {},
		"one that allows":                      {nil, []*policyv1.PodDisruptionBudget{newPDB("a", nil)}, 0},
		"one that is full":                     {nil, []*policyv1.PodDisruptionBudget{newPDB("a", full)}, 429},
		"one that is not synced with its spec": {nil, []*policyv1.PodDisruptionBudget{newPDB("a", unsynced)}, 429},
		"two":                                  {nil, []*policyv1.PodDisruptionBudget{newPDB("a", nil), newPDB("b", nil)}, 500},
		"two, one of other pods": {nil, []*policyv1.PodDisruptionBudget{newPDB("a", nil), newPDB("b", func(b *policyv1.PodDisruptionBudget) {
			b.Spec.Selector.MatchLabels["app"] = "api"
		})}, 0},
		"two, a pod that is not Ready":                  {unready, []*policyv1.PodDisruptionBudget{newPDB("a", nil), newPDB("b", nil)}, 500},
		"full, a pod that is not Ready":                 {unready, []*policyv1.PodDisruptionBudget{newPDB("a", full)}, 0},
		"not synced, a pod that is not Ready":           {unready, []*policyv1.PodDisruptionBudget{newPDB("a", unsynced)}, 0},
		"too few healthy pods, a pod that is not Ready": {unready, []*policyv1.PodDisruptionBudget{newPDB("a", short)}, 429},
		"no healthy pods needed, a pod that is not Ready": {unready, []*policyv1.PodDisruptionBudget{newPDB("a", func(b *policyv1.PodDisruptionBudget) {
			b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2}
		})}, 429},
		"too few healthy pods, a pod that is not Ready, AlwaysAllow": {unready, []*policyv1.PodDisruptionBudget{newPDB("a", func(b *policyv1.PodDisruptionBudget) {
			short(b)
			b.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
		})}, 0},
		"full, AlwaysAllow": {nil, []*policyv1.PodDisruptionBudget{newPDB("a", func(b *policyv1.PodDisruptionBudget) {
			full(b)
			b.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
		})}, 429},
		"two, a completed pod": {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, []*policyv1.PodDisruptionBudget{newPDB("a", nil), newPDB("b", nil)}, 0},
		"two, a pending pod":   {func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, []*policyv1.PodDisruptionBudget{newPDB("a", nil), newPDB("b", nil)}, 0},
		"two, a terminating pod": {func(p *corev1.Pod) { p.DeletionTimestamp, p.Finalizers = new(metav1.Now()), []string{"a"} },
			[]*policyv1.PodDisruptionBudget{newPDB("a", nil), newPDB("b", nil)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(tc.pod)
			objects := []runtime.Object{p}
			for _, b := range tc.pdbs {
				objects = append(objects, b)
			}
			fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, nil)}, objects...)
			refusal, err := fx.guard.PDBs.Blocking(t.Context(), p)
			if err != nil || ptr.Deref(refusal, metav1.Status{}).Code != tc.want {
				t.Errorf("got %+v, %v; want code %d", refusal, err, tc.want)
			}
		})
	}
}
