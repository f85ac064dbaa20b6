package budget

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/ownerchain"
)

// The budget decides about the update that takes a pod out of its target, but not about
// a later update by which the controller removes its owner reference.
func TestAnUpdateThatTakesAPodOutOfItsTargetIsDecidedByTheBudget(t *testing.T) {
	target := func(b *v1alpha1.PodUnavailableBudget) {
		b.Spec.Selector, b.Spec.TargetRef = nil, &v1alpha1.TargetRef{APIVersion: "apps", Kind: "Deployment", Name: "web"}
	}
	byLabel := ownerchain.Selection{Selector: labels.SelectorFromSet(labels.Set{"app": "web"})}
	ending := byLabel
	ending.TerminatingOrGone = true
	relabelled := func(p *corev1.Pod) { p.Labels["app"] = "debug" }
	orphaned := func(p *corev1.Pod) { p.OwnerReferences = nil }
	for name, tc := range map[string]struct {
		before, after func(*corev1.Pod)
		by            ownerchain.Selection
		want          bool
	}{
		"a label that its controller selects by": {nil, relabelled, byLabel, false},
		"another label":                          {nil, func(p *corev1.Pod) { p.Labels["more"] = "yes" }, byLabel, true},
		"a label, with an unknown selector":      {nil, relabelled, ownerchain.Selection{}, false},
		"a label, the controller selects all":    {nil, relabelled, ownerchain.Selection{Selector: labels.Everything()}, true},
		"the removal, its owner selects all":     {nil, orphaned, ownerchain.Selection{Selector: labels.Everything()}, false},
		"the removal of its owner":               {nil, orphaned, byLabel, false},
		"the removal by its controller, later":   {relabelled, func(p *corev1.Pod) { relabelled(p); orphaned(p) }, byLabel, true},
		"the deletion of its ReplicaSet":         {nil, orphaned, ending, true},
		"a controller that does not exist":       {nil, func(p *corev1.Pod) { p.OwnerReferences[0].Name = "gone" }, byLabel, false},
		"one with the kind and name of the target": {nil, func(p *corev1.Pod) {
			p.OwnerReferences[0].Kind, p.OwnerReferences[0].Name, p.OwnerReferences[0].UID = "Deployment", "web", "fake"
		}, byLabel, false},
		"another ReplicaSet of the same Deployment": {nil, func(p *corev1.Pod) { p.OwnerReferences[0].Name, p.OwnerReferences[0].UID = "web-2", "uid-2" }, byLabel, true},
	} {
		above := chains{remembered: map[string]budget.Chain{"web-1": {rs, deployment}, "web-2": {rs, deployment}, "gone": {missing}, "web": {deletedOwner}}, selections: map[string]ownerchain.Selection{"web-1": tc.by}}
		fx := newFixture(t, above, []*v1alpha1.PodUnavailableBudget{newBudget("web", 0, target)}, newPod(nil))
		if a := fx.ask(t, updating(t, "", newPod(tc.before), newPod(tc.after))); a.Response.Allowed != tc.want {
			t.Errorf("%s: %+v", name, a)
		}
		room := newFixture(t, above, []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, target)}, newPod(nil))
		if a := room.ask(t, updating(t, "", newPod(tc.before), newPod(tc.after))); !a.Response.Allowed || (len(room.budget(t, "web").Status.UnavailablePods) == 0) != tc.want {
			t.Errorf("%s, with 1 allowed: %+v, charged %v", name, a, room.budget(t, "web").Status.UnavailablePods)
		}
	}
}

// The controller may choose its pods by any label.
func TestADenialSaysThatTheSelectorOfTheControllerIsUnknown(t *testing.T) {
	target := func(b *v1alpha1.PodUnavailableBudget) {
		b.Spec.Selector, b.Spec.TargetRef = nil, &v1alpha1.TargetRef{APIVersion: "apps", Kind: "Deployment", Name: "web"}
	}
	const why = "the selector of ReplicaSet web-1 is unknown: reading it is forbidden"
	above := chains{remembered: living.remembered, selections: map[string]ownerchain.Selection{"web-1": {Unknown: why}}}
	fx := newFixture(t, above, []*v1alpha1.PodUnavailableBudget{newBudget("web", 0, target)}, newPod(nil))
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"another label":      {func(p *corev1.Pod) { p.Labels["role"] = "primary" }, true},
		"marked unavailable": {func(p *corev1.Pod) { p.Labels[v1alpha1.UnavailableLabelPrefix+"x"] = "1" }, false},
		"another image":      {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "web:2" }, false},
	} {
		a := fx.ask(t, updating(t, "", newPod(nil), newPod(tc.change)))
		if a.Response.Allowed || strings.Contains(a.Response.Result.Message, why) != tc.want {
			t.Errorf("%s: %+v", name, a.Response)
		}
	}
}

// Otherwise a person could take a pod out of the budget, and then delete it.
func TestAnUpdateThatTakesAPodOutOfABudgetIsAlwaysDecidedByIt(t *testing.T) {
	evictions := func(b *v1alpha1.PodUnavailableBudget) {
		b.Spec.ProtectOperations = []v1alpha1.PodOperation{v1alpha1.OperationEvict}
	}
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		denied bool
	}{
		"a label outside the selector": {func(p *corev1.Pod) { p.Labels["app"] = "debug" }, true},
		"made exempt":                  {func(p *corev1.Pod) { p.Annotations = map[string]string{v1alpha1.NoProtectAnnotation: "true"} }, true},
		"marked unavailable":           {func(p *corev1.Pod) { p.Labels[v1alpha1.UnavailableLabelPrefix+"x"] = "1" }, true},
		"exempt with another image": {func(p *corev1.Pod) {
			p.Annotations, p.Spec.Containers[0].Image = map[string]string{v1alpha1.NoProtectAnnotation: "true"}, "web:2"
		}, true},
		"another image, and a label outside the selector": {func(p *corev1.Pod) { p.Labels["app"], p.Spec.Containers[0].Image = "debug", "web:2" }, true},
		"another image": {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "web:2" }, false},
	} {
		fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 0, evictions)}, newPod(nil))
		if a := fx.ask(t, updating(t, "", newPod(nil), newPod(tc.change))); a.Response.Allowed == tc.denied {
			t.Errorf("%s: allowed %t", name, a.Response.Allowed)
		}
	}
}
