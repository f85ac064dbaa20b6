package wiring

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	logtesting "knative.dev/pkg/logging/testing"
)

func TestObjectReturnsTheLastKnownStateOfADeletedObject(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	for name, tc := range map[string]struct {
		obj  any
		want *corev1.Pod
	}{
		"an object":                     {pod, pod},
		"a tombstone":                   {cache.DeletedFinalStateUnknown{Key: "shop/web", Obj: pod}, pod},
		"a tombstone without an object": {cache.DeletedFinalStateUnknown{Key: "shop/web"}, nil},
		"an object of another type":     {&corev1.Node{}, nil},
		"nothing":                       {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := Object[*corev1.Pod](tc.obj)
			if got != tc.want || ok != (tc.want != nil) {
				t.Errorf("got %v, %v", got, ok)
			}
		})
	}
}

func TestMustPanicsOnAnErrorOnly(t *testing.T) {
	must := NewMust(logtesting.TestContextWithLogger(t), "set up the controller")
	must(nil)
	defer func() {
		if recover() == nil {
			t.Error("it does not panic")
		}
	}()
	must(errors.New("no such field"))
}
