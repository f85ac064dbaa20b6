package savedtemplate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// rollout is the kind of Argo Rollouts.
var rollout = workload.Kind{
	GroupVersionKind: schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"},
	Resource:         "rollouts", Revisions: workload.ReplicaSets,
}

// The template of a ReplicaSet has a label that the controller adds, and default values that the API server adds to
// a ReplicaSet and a Deployment, but not to a custom kind. Both controllers copy the annotations of the workload.
func TestAReplicaSetHasTheVersionOfItsWorkloadsTemplate(t *testing.T) {
	written := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	stored := *written.DeepCopy()
	stored.Spec.RestartPolicy = corev1.RestartPolicyAlways
	release := func(version string) map[string]string {
		return map[string]string{v1alpha1.VersionKey: version, v1alpha1.AttemptAnnotation: "3"}
	}
	for name, tc := range map[string]struct {
		kind          workload.Kind
		label, number string
		annotations   map[string]string
		wantVersionOf corev1.PodTemplateSpec
	}{
		"of a Rollout":                           {rollout, "rollouts-pod-template-hash", "rollout.argoproj.io/revision", release(version(t, rollout, written)), written},
		"of a Rollout before the opt-in":         {rollout, "rollouts-pod-template-hash", "rollout.argoproj.io/revision", map[string]string{}, stored},
		"of a Deployment":                        {workload.Deployment, "pod-template-hash", "deployment.kubernetes.io/revision", release(version(t, workload.Deployment, stored)), stored},
		"of a Deployment, the webhook missed it": {workload.Deployment, "pod-template-hash", "deployment.kubernetes.io/revision", release("of-the-former-template"), stored},
	} {
		t.Run(name, func(t *testing.T) {
			w := &workload.Workload{Kind: tc.kind, ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "u1"}}
			set := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "web", tc.label: "1"}},
				"spec":     map[string]any{"restartPolicy": "Always"},
			}}}}
			set.SetName("web-1")
			set.SetUID("r1")
			set.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(w, tc.kind.GroupVersionKind)})
			// A Rollout that was copied from a Deployment has its annotation, too.
			tc.annotations["deployment.kubernetes.io/revision"] = "3"
			tc.annotations[tc.number] = "7"
			set.SetAnnotations(tc.annotations)
			got, err := savedtemplate.FromReplicaSets([]unstructured.Unstructured{set}, w)
			if err != nil {
				t.Fatal(err)
			}
			want := []savedtemplate.Template{{Name: "web-1", UID: "r1", Revision: 7, Version: version(t, tc.kind, tc.wantVersionOf), Recorded: tc.annotations[v1alpha1.VersionKey],
				Raw: []byte(`{"metadata":{"labels":{"app":"web"}},"spec":{"restartPolicy":"Always"}}`)}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func version(t *testing.T, kind workload.Kind, template corev1.PodTemplateSpec) string {
	t.Helper()
	v, err := workload.Version(kind, &template)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestALargeNumberOfAControllerRevisionIsKept(t *testing.T) {
	w := &workload.Workload{Kind: workload.StatefulSet, ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "u1"}}
	r := appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w, w.Kind.GroupVersionKind)}},
		Data:       runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"$patch":"replace","spec":{"tolerations":[{"operator":"Exists","tolerationSeconds":9223372036854775807}]}}}}`)},
	}
	got, err := savedtemplate.FromControllerRevisions([]appsv1.ControllerRevision{r}, w)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"spec":{"tolerations":[{"operator":"Exists","tolerationSeconds":9223372036854775807}]}}`; string(got[0].Raw) != want {
		t.Errorf("the template is %s, want %s", got[0].Raw, want)
	}
}
