package selfcheck

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/breakwater-dev/breakwater/internal/jsonfields"
)

// CRD is a required CustomResourceDefinition.
type CRD struct {
	// Name is its name, Version the version that this process reads.
	Name, Version string
	// Type is the Go type of its objects.
	Type reflect.Type
}

// Schema is the observed schema of a CRD.
type Schema struct {
	CRD
	Exists bool
	// Missing are the fields that it lacks, as of MissingFields.
	Missing []string
}

// schemas reads the CRDs.
func (r *Reconciler) schemas(ctx context.Context) (all []Schema, failed []Failure) {
	for _, c := range r.plan.CRDs {
		missing, err := readChanged(ctx, r.unchanged, guardRef{apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"), c.Name}, r.crds.Get,
			func(found *apiextensionsv1.CustomResourceDefinition) []string { return MissingFields(found, c) })
		if failed = appendFailure(failed, c.Name, unlessAbsent(err)); unlessAbsent(err) == nil {
			all = append(all, Schema{CRD: c, Exists: err == nil, Missing: missing})
		}
	}
	return all, failed
}

// crd checks the schema of a CRD. The API server drops the fields that it lacks, in
// objects and in the status that we write.
func crd(s Schema) []Finding {
	f := Finding{Reason: ReasonCRDDiffers, Object: s.Name}
	if !s.Exists {
		f.Message = "the CRD does not exist"
		return []Finding{f}
	}
	if len(s.Missing) == 0 {
		return nil
	}
	f.Message = fmt.Sprintf("the CRD lacks %s: it is of another version or of another program (OpenKruise has one of the same name), "+
		"and the API server drops these fields; apply the CRD of this version again", strings.Join(s.Missing, ", "))
	return []Finding{f}
}

// maxMissing limits the fields in a message.
const maxMissing = 5

// MissingFields returns fields directly below spec and status that the CRD lacks in its
// version, at most maxMissing.
func MissingFields(found *apiextensionsv1.CustomResourceDefinition, c CRD) []string {
	i := slices.IndexFunc(found.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == c.Version && v.Served })
	if i < 0 {
		return []string{"version " + c.Version}
	}
	var properties map[string]apiextensionsv1.JSONSchemaProps
	if s := found.Spec.Versions[i].Schema; s != nil && s.OpenAPIV3Schema != nil {
		properties = s.OpenAPIV3Schema.Properties
	}
	var missing []string
	for _, part := range []string{"spec", "status"} {
		for _, name := range slices.Sorted(maps.Keys(jsonfields.Of(jsonfields.Of(c.Type)[part]))) {
			if _, ok := properties[part].Properties[name]; !ok {
				missing = append(missing, part+"."+name)
			}
		}
	}
	if len(missing) > maxMissing {
		missing = append(missing[:maxMissing], "...")
	}
	return missing
}
