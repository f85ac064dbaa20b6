package pod

import (
	"errors"
	"testing"

	"go.opentelemetry.io/otel/metric/noop"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	appslisters "k8s.io/client-go/listers/apps/v1"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
)

func TestTheAnswerToTheLabel(t *testing.T) {
	tests := map[string]struct {
		answer  error
		told    int
		wantErr bool
	}{
		"an event follows a label": {told: 1},
		"a pod that is gone is no error and no event": {
			answer: apierrs.NewNotFound(corev1.Resource("pods"), "p"),
		},
		"a later pod of the name is no error and no event": {
			answer: apierrs.NewConflict(corev1.Resource("pods"), "p", errors.New("uid differs")),
		},
		"another error is tried again, and nothing is told before": {
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
			replicaSets := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
			if err := replicaSets.Add(replicaSet("1")); err != nil {
				t.Fatal(err)
			}
			counter, _ := noop.Meter{}.Int64Counter("")
			sent := &outbox{}
			r := &Reconciler{kube: kube, sender: sent, finished: counter, facts: facts{
				guarded: func(any) bool { return true }, replicaSets: appslisters.NewReplicaSetLister(replicaSets),
			}}
			err := r.ReconcileKind(t.Context(), p)
			if (err != nil) != tc.wantErr {
				t.Errorf("error %v, want one: %v", err, tc.wantErr)
			}
			if got := len(sent.all()); got != tc.told {
				t.Errorf("%d events, want %d", got, tc.told)
			}
		})
	}
}
