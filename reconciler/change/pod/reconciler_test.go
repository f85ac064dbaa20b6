package pod

import (
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/metrics"
)

// known returns the same release for every pod.
type known struct{}

func (known) ReleaseOfPod(*corev1.Pod) (v1alpha1.WorkloadRef, v1alpha1.Release, bool) {
	return v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "sleep"}, v1alpha1.Release{Version: "v1", Attempt: 1}, true
}

func TestAnEventFollowsASuccessfulLabel(t *testing.T) {
	tests := map[string]struct {
		answer     error
		rollingOut bool
		before     int // labels of the release before
		events     int
		wantErr    bool
	}{
		"an event follows a label":                                   {events: 1},
		"a pod above the burst waits during the rollout":             {rollingOut: true, before: labelBurst, wantErr: true},
		"the same pod does not wait after the rollout":               {before: labelBurst, events: 1},
		"the last pod of the burst does not wait during the rollout": {rollingOut: true, before: labelBurst - 1, events: 1},
		"a deleted pod is no error and has no event": {
			answer: apierrs.NewNotFound(corev1.Resource("pods"), "p"),
		},
		"a later pod of the name is no error and has no event": {
			answer: apierrs.NewConflict(corev1.Resource("pods"), "p", errors.New("uid differs")),
		},
		"another error is retried without an event": {
			answer: apierrs.NewInternalError(errors.New("etcd")), wantErr: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := readyPod("p")
			kube := fake.NewClientset(p)
			if tc.answer != nil {
				kube.PrependReactor("patch", "pods", func(clientgotesting.Action) (bool, runtime.Object, error) { return true, nil, tc.answer })
			}
			sent := &outbox{}
			paced := newLabelLimiter(clocktesting.NewFakePassiveClock(time.Unix(1700000000, 0)))
			for range tc.before {
				paced.take(ownerUID(p), tc.rollingOut)
			}
			r := &Reconciler{kube: kube, sender: sent, finished: metrics.NewCounter(noop.Meter{}, "breakwater_pods_finished_total"), labels: paced, inputs: inputs{
				optedIn: func(any) bool { return true }, releases: known{},
				rollingOut: func(string, v1alpha1.WorkloadRef) bool { return tc.rollingOut },
			}}
			err := r.ReconcileKind(t.Context(), p)
			if again, _ := controller.IsRequeueKey(err); tc.rollingOut && tc.before == labelBurst && !again {
				t.Errorf("got %v, want a requeue", err)
			}
			if (err != nil) != tc.wantErr {
				t.Errorf("got error %v, want one: %v", err, tc.wantErr)
			}
			if got := len(sent.all()); got != tc.events {
				t.Errorf("%d events, want %d", got, tc.events)
			}
		})
	}
}
