package podpermission

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

type reportSink struct{ reports []api.PodReport }

func (s *reportSink) ReportPods(_ context.Context, _ string, r api.PodReport) (api.PodReportResult, error) {
	s.reports = append(s.reports, r)
	return api.PodReportResult{Revoked: 1, Held: 2}, nil
}

func TestAReportNamesTheUIDOfTheCluster(t *testing.T) {
	w := newFixture(t, pod(func(p *corev1.Pod) { p.Labels = map[string]string{podmeta.Label: podmeta.LabelRequired} }), nil)
	sink := &reportSink{}
	tasks := &periodicTasks{Reconciler: w.Reconciler, podReportReceiver: sink}
	if _, _, err := tasks.sendPodReport(t.Context(), zero); err == nil || !strings.Contains(err.Error(), "UID of the cluster") || len(sink.reports) > 0 {
		t.Errorf("without namespace kube-system: %v, %d reports", err, len(sink.reports))
	}
	namespaces := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := namespaces.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: types.UID("c1-uid")}}); err != nil {
		t.Fatal(err)
	}
	w.namespaces = corelisters.NewNamespaceLister(namespaces)
	revoked, unconfirmed, err := tasks.sendPodReport(t.Context(), zero)
	if err != nil || revoked != 1 || unconfirmed != 2 || len(sink.reports) != 1 {
		t.Fatalf("%d revoked, %d unconfirmed, %v, %d reports", revoked, unconfirmed, err, len(sink.reports))
	}
	if r := sink.reports[0]; r.ClusterUID != "c1-uid" || len(r.Pods) != 1 {
		t.Errorf("%+v", r)
	}
}
