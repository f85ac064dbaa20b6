package changepod

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	_ "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace/fake"
	_ "knative.dev/pkg/client/injection/kube/informers/factory/fake"
	"knative.dev/pkg/configmap"
	rtesting "knative.dev/pkg/reconciler/testing"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	fakechangeclient "github.com/breakwater-dev/breakwater/client/injection/client/fake"
	changepodinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changepod"
	_ "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changepod/fake"
	_ "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changeworkload/fake"
	_ "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/opsconfiginfo/fake"
	"github.com/breakwater-dev/breakwater/reconciler/change/callqueue"
)

func TestTheCacheOfChangePodsDropsOnlyTheirManagedFields(t *testing.T) {
	ctx, cancel, informers := rtesting.SetupFakeContextWithCancel(t)
	defer cancel()
	want := &v1alpha1.ChangePod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "batch", Namespace: "default", UID: "u", Generation: 2,
			Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, Finalizers: []string{"f"},
			OwnerReferences: []metav1.OwnerReference{{Name: "release", UID: "r"}},
		},
		Spec:   v1alpha1.ChangePodSpec{ChangeWorkloadID: "release", PodInfos: []v1alpha1.PodSummary{{}}},
		Status: v1alpha1.ChangePodStatus{Message: "of a batch"},
	}
	stored := want.DeepCopy()
	stored.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "submit", Time: &metav1.Time{Time: time.Unix(0, 0)}}}
	if err := fakechangeclient.Get(ctx).Tracker().Add(stored); err != nil {
		t.Fatal(err)
	}
	NewController(ctx, configmap.NewStaticWatcher(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: altershield.ConfigMapName}}),
		nil, callqueue.New(clock.RealClock{}))
	stopped, err := rtesting.RunAndSyncInformers(ctx, informers...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); stopped() }()
	got, err := changepodinformer.Get(ctx).Lister().ChangePods("default").Get("batch")
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error("(-want +cached):", err, diff)
	}
}
