package admission_test

import (
	"encoding/json"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/breakwater-dev/breakwater/admission"
	kind "github.com/breakwater-dev/breakwater/internal/workload"
)

// A custom resource is stored as its user wrote it. Its controller writes it again from
// Go types, which adds empty fields. The empty fields do not change the template.
func TestARewriteByTheControllerOfAWorkloadIsNoChangeOfItsTemplate(t *testing.T) {
	rollout := kind.Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"},
		Resource:         "rollouts", Revisions: kind.ReplicaSets,
	}
	const written = `{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[
		{"name":"c","image":"busybox:1","tty":false,"command":[],"resources":{"limits":{"cpu":"1000m","memory":1024}}}]}}`
	for name, tc := range map[string]struct {
		template string
		want     bool
	}{
		"the same bytes": {written, false},
		"from Go types": {`{"metadata":{"creationTimestamp":null,"labels":{"app":"web"}},"spec":{"containers":[
			{"image":"busybox:1","name":"c","resources":{"limits":{"cpu":"1","memory":"1024"}}}]}}`, false},
		"from Go types, with another image": {`{"metadata":{"creationTimestamp":null,"labels":{"app":"web"}},"spec":{"containers":[
			{"image":"busybox:2","name":"c","resources":{"limits":{"cpu":"1","memory":"1024"}}}]}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			object := func(template string) runtime.RawExtension {
				return runtime.RawExtension{Raw: json.RawMessage(`{"spec":{"template":` + template + `}}`)}
			}
			c, err := admission.ReadChange(rollout, &admissionv1.AdmissionRequest{OldObject: object(written), Object: object(tc.template)})
			if err != nil || c.TemplateChanged != tc.want {
				t.Errorf("TemplateChanged = %v, %v, want %v", c.TemplateChanged, err, tc.want)
			}
		})
	}
}
