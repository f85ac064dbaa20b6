package finalizer

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

func TestPodsAreLookedAtWhenTheirNamespaceAsksForSomethingElse(t *testing.T) {
	namespace := func(labels, annotations map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: labels, Annotations: annotations}}
	}
	enabled := map[string]string{podmeta.Label: podmeta.LabelEnabled}
	for name, tc := range map[string]struct {
		was, is *corev1.Namespace
		look    bool
	}{
		"it came":             {nil, namespace(nil, nil), true},
		"nothing changed":     {namespace(enabled, nil), namespace(enabled, nil), false},
		"something else":      {namespace(enabled, nil), namespace(enabled, map[string]string{"team": "shop"}), false},
		"enabled":             {namespace(nil, nil), namespace(enabled, nil), true},
		"not enabled now":     {namespace(enabled, nil), namespace(nil, nil), true},
		"sets":                {namespace(enabled, nil), namespace(enabled, map[string]string{podmeta.SetAnnotation: "web"}), true},
		"an annotation of no": {namespace(enabled, nil), namespace(enabled, map[string]string{podmeta.SetAnnotation: ""}), true},
	} {
		t.Run(name, func(t *testing.T) {
			looked := 0
			h := namespaceHandler(func(name string) {
				if name == "shop" {
					looked++
				}
			})
			if tc.was == nil {
				h.OnAdd(tc.is, false)
			} else {
				h.OnUpdate(tc.was, tc.is)
			}
			if (looked == 1) != tc.look || looked > 1 {
				t.Errorf("looked %d times, want %t", looked, tc.look)
			}
		})
	}
}

// One whose workload asks still does, when its namespace is enabled no more.
func TestAPodThatGotInWithoutWaitingSaysWhenItsNamespaceIsNotEnabledAnyMore(t *testing.T) {
	p := pod(plain)
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: podmeta.ConditionInjected, Status: corev1.ConditionFalse, Reason: podmeta.ReasonPermissionNotInjected})
	w := newWorld(t, p, nil)
	w.requiredSets.Owners = workload{}
	w.look(t)
	got, err := w.kube.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c := podmeta.Condition(got, podmeta.ConditionInjected); c == nil || c.Reason != podmeta.ReasonNamespaceNotEnabled {
		t.Errorf("condition %+v", c)
	}
}

// workload asks for the set web.
type workload struct{}

func (workload) Annotation(context.Context, string, []metav1.OwnerReference, string) (string, bool, error) {
	return "web", true, nil
}

func TestAPodThatAsksForNothingAnyMoreIsNotSaidToHaveGotInWithoutWaiting(t *testing.T) {
	p := pod(plain)
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: podmeta.ConditionInjected, Status: corev1.ConditionFalse, Reason: podmeta.ReasonPermissionNotInjected})
	w := newWorld(t, p, nil)
	w.look(t)
	got, err := w.kube.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c := podmeta.Condition(got, podmeta.ConditionInjected); c != nil {
		t.Errorf("condition %+v", c)
	}
	if told := w.events(); told != "" {
		t.Errorf("told %q", told)
	}
}
