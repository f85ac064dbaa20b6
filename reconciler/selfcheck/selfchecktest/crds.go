// Package selfchecktest has checks for tests of self-check plans.
package selfchecktest

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/breakwater-dev/breakwater/reconciler/selfcheck"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// CheckCRDs fails unless a plan checks exactly the CRDs of the manifests, which have all
// fields of our types.
func CheckCRDs(t *testing.T, plan selfcheck.Plan, manifests ...string) {
	t.Helper()
	installed := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range manifests {
		for _, crd := range builder.Manifests[apiextensionsv1.CustomResourceDefinition](t, file) {
			if crd.Name != "" { // the header of the file
				installed[crd.Name] = &crd
			}
		}
	}
	if len(plan.CRDs) != len(installed) {
		t.Errorf("%d CRDs are checked, %d are installed", len(plan.CRDs), len(installed))
	}
	for _, c := range plan.CRDs {
		if crd := installed[c.Name]; crd == nil {
			t.Errorf("%s is not installed", c.Name)
		} else if missing := selfcheck.MissingFields(crd, c); len(missing) > 0 {
			t.Errorf("%s lacks %v", c.Name, missing)
		}
	}
}
