package workloadinformer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

func TestOnlyNeededFieldsAreCached(t *testing.T) {
	u := object("apps/v1", "Deployment", "d")
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
	u.SetAnnotations(map[string]string{
		"kubectl.kubernetes.io/last-applied-configuration": "{}",
		"deployment.kubernetes.io/revision":                "7",
		v1alpha1.AttemptAnnotation:                         "3",
		v1alpha1.HoldAnnotation:                            "{}",
		"no-domain":                                        "",
	})
	transform := (&Watch{logger: zap.NewNop().Sugar()}).transform(workload.Deployment)
	once, err := transform(u)
	if err != nil {
		t.Fatal(err)
	}
	w, ok := once.(*workload.Workload)
	if !ok {
		t.Fatalf("cached as %T", once)
	}
	if diff := cmp.Diff(map[string]string{v1alpha1.AttemptAnnotation: "3", v1alpha1.HoldAnnotation: "{}"}, w.Annotations); diff != "" {
		t.Error(diff)
	}
	if w.ManagedFields != nil {
		t.Error("managed fields are cached")
	}
	if again, err := transform(once); err != nil || again != once {
		t.Errorf("a second time it became %v, %v", again, err)
	}
}

func TestAMalformedWorkloadDoesNotBlockOthers(t *testing.T) {
	u := object("apps/v1", "Deployment", "d")
	u.Object["spec"] = map[string]any{"replicas": "three"}
	got, err := (&Watch{logger: zap.NewNop().Sugar()}).transform(workload.Deployment)(u)
	if err != nil {
		t.Fatal(err)
	}
	if isWorkload(got) {
		t.Error("it is taken for a workload")
	}
	if key, err := cache.MetaNamespaceKeyFunc(got); err != nil || key != "default/d" {
		t.Errorf("its key is %q, %v", key, err)
	}
}
