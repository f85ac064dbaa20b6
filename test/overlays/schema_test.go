package overlays

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsinternal "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	sigsyaml "sigs.k8s.io/yaml"
)

// kinds validates objects like an API server with strict field validation.
type kinds map[schema.GroupVersionKind]kind

// kind is a version of a CustomResourceDefinition.
type kind struct {
	fields    *structural.Structural
	validator validation.SchemaValidator
}

// check returns the unknown fields and invalid values of an object.
func (k kinds) check(u *unstructured.Unstructured) error {
	custom, ok := k[u.GroupVersionKind()]
	if !ok {
		return builtIn(u)
	}
	var errs []error
	pruned := pruning.PruneWithOptions(u.DeepCopy().Object, custom.fields, true,
		structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	if len(pruned) > 0 {
		errs = append(errs, fmt.Errorf("unknown field %s", strings.Join(pruned, ", ")))
	}
	for _, err := range validation.ValidateCustomResource(nil, u.Object, custom.validator) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// builtIn checks the fields of a Kubernetes object against its type. The
// end-to-end tests check the values.
func builtIn(u *unstructured.Unstructured) error {
	types := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(types), apiextensions.AddToScheme(types)); err != nil {
		return err
	}
	raw, err := u.MarshalJSON()
	if err != nil {
		return err
	}
	_, _, err = serializer.NewCodecFactory(types, serializer.EnableStrict).UniversalDeserializer().Decode(raw, nil, nil)
	return err
}

// loadKinds reads the definitions of sources and of config/core.
func loadKinds(t *testing.T) kinds {
	t.Helper()
	patterns := []string{filepath.Join(config, "core", "*-crd-*.yaml")}
	for _, s := range sources {
		patterns = append(patterns, filepath.Join(module(t, s.module), filepath.FromSlash(s.pattern)))
	}
	known := kinds{}
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := known.add(raw); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
	}
	return known
}

// add reads the CustomResourceDefinitions in a file and ignores other objects.
func (k kinds) add(raw []byte) error {
	documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(raw)))
	defer func() { _ = documents.Close() }()
	for {
		document := make([]byte, len(raw))
		n, err := documents.Read(document)
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var crd apiextensions.CustomResourceDefinition
		if err := sigsyaml.Unmarshal(document[:n], &crd); err != nil {
			return err
		}
		if crd.Kind != "CustomResourceDefinition" {
			continue
		}
		for i := range crd.Spec.Versions {
			if err := k.addVersion(&crd, &crd.Spec.Versions[i]); err != nil {
				return fmt.Errorf("%s %s: %w", crd.Name, crd.Spec.Versions[i].Name, err)
			}
		}
	}
}

func (k kinds) addVersion(crd *apiextensions.CustomResourceDefinition, v *apiextensions.CustomResourceDefinitionVersion) error {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return errors.New("no schema")
	}
	var internal apiextensionsinternal.JSONSchemaProps
	if err := apiextensions.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
		return err
	}
	fields, err := structural.NewStructural(&internal)
	if err != nil {
		return err
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		return err
	}
	k[schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}] = kind{fields, validator}
	return nil
}
