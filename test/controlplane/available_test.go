package controlplane

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestAWatchThatEndsEarlyHasNoLowestNumber(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web", Labels: map[string]string{"app": "web"}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	gone := apierrors.NewResourceExpired("too old").Status()
	for name, tc := range map[string]struct {
		event func(*watch.FakeWatcher)
		want  int
		fails bool
	}{
		"a pod is deleted":     {func(w *watch.FakeWatcher) { w.Delete(pod) }, 0, false},
		"nothing happens":      {func(*watch.FakeWatcher) {}, 1, false},
		"the server closes it": {func(w *watch.FakeWatcher) { w.Stop() }, 0, true},
		"the server fails":     {func(w *watch.FakeWatcher) { w.Error(&gone) }, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kube, events := fake.NewClientset(pod), watch.NewFake()
				kube.PrependWatchReactor("pods", clienttesting.DefaultWatchReactor(events, nil))
				lowest, err := WatchAvailable(t.Context(), kube, "default", 1)
				if err != nil {
					t.Fatal(err)
				}
				tc.event(events)
				synctest.Wait()
				if got, err := lowest(); got != tc.want || (err != nil) != tc.fails {
					t.Errorf("got %d, %v, want %d, failed %v", got, err, tc.want, tc.fails)
				}
			})
		})
	}
}
