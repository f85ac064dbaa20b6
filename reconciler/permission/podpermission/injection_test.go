package podpermission

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

func TestPodsAreReconciledWhenTheRequestOfTheirNamespaceChanges(t *testing.T) {
	namespace := func(labels, annotations map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: labels, Annotations: annotations}}
	}
	enabled := map[string]string{podmeta.Label: podmeta.LabelEnabled}
	for name, tc := range map[string]struct {
		was, is *corev1.Namespace
		want    bool
	}{
		"added":            {nil, namespace(nil, nil), true},
		"unchanged":        {namespace(enabled, nil), namespace(enabled, nil), false},
		"other annotation": {namespace(enabled, nil), namespace(enabled, map[string]string{"team": "shop"}), false},
		"label added":      {namespace(nil, nil), namespace(enabled, nil), true},
		"label removed":    {namespace(enabled, nil), namespace(nil, nil), true},
		"sets added":       {namespace(enabled, nil), namespace(enabled, map[string]string{podmeta.PermissionSetAnnotation: "web"}), true},
		"empty sets added": {namespace(enabled, nil), namespace(enabled, map[string]string{podmeta.PermissionSetAnnotation: ""}), true},
	} {
		t.Run(name, func(t *testing.T) {
			enqueued := 0
			h := namespaceHandler(func(name string) {
				if name == "shop" {
					enqueued++
				}
			})
			if tc.was == nil {
				h.OnAdd(tc.is, false)
			} else {
				h.OnUpdate(tc.was, tc.is)
			}
			if (enqueued == 1) != tc.want || enqueued > 1 {
				t.Errorf("enqueued %d times, want %t", enqueued, tc.want)
			}
		})
	}
}

// The workload of the pod still requests sets when its namespace is no longer enabled.
func TestTheConditionOfAnUninjectedPodFollowsTheLabelOfItsNamespace(t *testing.T) {
	p := pod(withoutInitContainer)
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: podmeta.ConditionInjected, Status: corev1.ConditionFalse, Reason: podmeta.ReasonPermissionNotInjected})
	w := newFixture(t, p, nil)
	w.requiredSets.Owners = setsOfOwner{}
	w.reconcile(t)
	got, err := w.kube.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c := podmeta.Condition(got, podmeta.ConditionInjected); c == nil || c.Reason != podmeta.ReasonNamespaceNotEnabled {
		t.Errorf("condition %+v", c)
	}
}

// setsOfOwner is an owner with the set web.
type setsOfOwner struct{}

func (setsOfOwner) Annotation(context.Context, string, []metav1.OwnerReference, string) (string, bool, error) {
	return "web", true, nil
}

func TestTheConditionIsRemovedWhenAPodNoLongerRequestsSets(t *testing.T) {
	p := pod(withoutInitContainer)
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: podmeta.ConditionInjected, Status: corev1.ConditionFalse, Reason: podmeta.ReasonPermissionNotInjected})
	w := newFixture(t, p, nil)
	w.reconcile(t)
	got, err := w.kube.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c := podmeta.Condition(got, podmeta.ConditionInjected); c != nil {
		t.Errorf("condition %+v", c)
	}
	if events := w.events(); events != "" {
		t.Errorf("events %q", events)
	}
}
