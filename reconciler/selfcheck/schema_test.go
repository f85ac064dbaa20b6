package selfcheck

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Limit  int32 `json:"limit,omitempty"`
		Shadow bool  `json:"shadow"`
	} `json:"spec,omitempty"`
	Status struct {
		embedded `json:",inline"`
	} `json:"status,omitempty"`
}

type embedded struct {
	Conditions []string `json:"conditions,omitempty"`
}

// newCRD returns a CRD with the fields of spec and status.
func newCRD(version string, served bool, spec, status []string) *apiextensionsv1.CustomResourceDefinition {
	properties := func(names []string) apiextensionsv1.JSONSchemaProps {
		all := map[string]apiextensionsv1.JSONSchemaProps{}
		for _, name := range names {
			all[name] = apiextensionsv1.JSONSchemaProps{}
		}
		return apiextensionsv1.JSONSchemaProps{Properties: all}
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: version, Served: served,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": properties(spec), "status": properties(status)},
		}},
	}}
	return crd
}

func TestACRDWithoutOurFieldsIsFound(t *testing.T) {
	spec, status := []string{"limit", "shadow", "more"}, []string{"conditions"}
	withoutSchema := newCRD("v1", true, spec, status)
	withoutSchema.Spec.Versions[0].Schema = nil
	for name, tc := range map[string]struct {
		found *apiextensionsv1.CustomResourceDefinition
		want  string
	}{
		"ours or a newer one": {newCRD("v1", true, spec, status), ""},
		"none":                {nil, "the CRD does not exist"},
		"without two fields":  {newCRD("v1", true, []string{"limit"}, nil), "spec.shadow, status.conditions"},
		"of another version":  {newCRD("v2", true, spec, status), "version v1"},
		"not served":          {newCRD("v1", false, spec, status), "version v1"},
		"without a schema":    {withoutSchema, "spec.limit, spec.shadow, status.conditions"},
	} {
		t.Run(name, func(t *testing.T) {
			want := tc.want
			if want != "" && tc.found != nil {
				want = "the CRD lacks " + want + ": it is of another version or of another program (OpenKruise has one of the same name), " +
					"and the API server drops these fields; apply the CRD of this version again"
			}
			got := ""
			s := Schema{CRD: CRD{Name: "objects", Version: "v1", Type: reflect.TypeFor[object]()}}
			if tc.found != nil {
				s.Exists, s.Missing = true, MissingFields(tc.found, s.CRD)
			}
			for _, f := range crd(s) {
				got += f.Message
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
