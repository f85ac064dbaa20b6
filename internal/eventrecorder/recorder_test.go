package eventrecorder_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/breakwater-dev/breakwater/internal/eventrecorder"
	"github.com/breakwater-dev/breakwater/test/poll"
)

// All guards of a part have their Events on one Deployment, and doctor matches the end of a finding by its message.
func TestEachGuardHasEventsOfItsOwn(t *testing.T) {
	const guards = 200
	kube := kubefake.NewClientset()
	recorder := eventrecorder.NewUnmerged(t.Context(), kube, eventrecorder.Breakwater)
	deployment := &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "a", Name: "webhook"}
	var want []string
	for i := range guards {
		want = append(want, fmt.Sprintf("guard-%d: deleted", i), fmt.Sprintf("guard-%d: no longer GuardMissing", i))
		recorder.Event(deployment, corev1.EventTypeWarning, "GuardMissing", want[2*i])
		recorder.Event(deployment, corev1.EventTypeNormal, "GuardEnforced", want[2*i+1])
	}
	slices.Sort(want)
	poll.Require(t, 10*time.Millisecond, time.Minute, "all Events", func(ctx context.Context) error {
		list, err := kube.CoreV1().Events("a").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var got []string
		for _, e := range list.Items {
			got = append(got, e.Message)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("%d Events, want %d", len(got), len(want))
		}
		return nil
	})
}
