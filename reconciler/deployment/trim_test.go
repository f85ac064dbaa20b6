package deployment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

func TestTrimDropsWhatNobodyReads(t *testing.T) {
	whole := sleep(t, "1")
	whole.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	whole.Annotations[corev1.LastAppliedConfigAnnotation] = "{}"
	whole.Status = appsv1.DeploymentStatus{Replicas: 1}
	want := sleep(t, "1")
	want.Status = whole.Status
	got, err := Trim(whole)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("(-want +got):", diff)
	}
}

func TestTrimKeepsTheVersionOfTheTemplate(t *testing.T) {
	whole := sleep(t, "1")
	whole.Spec.Template.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "of the template"}
	before := versionOf(t, whole)
	if _, err := Trim(whole); err != nil {
		t.Fatal(err)
	}
	if after := versionOf(t, whole); after != before {
		t.Errorf("version %s became %s", before, after)
	}
}

func TestTrimPassesOnWhatItDoesNotKnow(t *testing.T) {
	tombstone := cache.DeletedFinalStateUnknown{Key: "default/sleep"}
	got, err := Trim(tombstone)
	if diff := cmp.Diff(any(tombstone), got); err != nil || diff != "" {
		t.Error("(-want +got):", err, diff)
	}
}
