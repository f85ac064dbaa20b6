package docs

import (
	"go/scanner"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// catalogue is what commands may name.
type catalogue struct {
	// kinds are the schemas of kinds by all names that kubectl accepts; nil for a kind that is not ours.
	kinds map[string]*apiextensionsv1.JSONSchemaProps
	// objects are the objects of config, for example deployment/controller.
	objects map[string]bool
	// literals are the strings in the code of the product.
	literals map[string]bool
	// targets are the targets of the Makefile.
	targets  map[string]bool
	makefile string
}

// otherKinds are kinds of other projects, and short names.
var otherKinds = []string{
	"cm", "crd", "crds", "customresourcedefinition", "customresourcedefinitions", "deploy", "ns", "po", "sa", "svc",
	"broker", "brokers", "trigger", "triggers", "ksvc", "revision", // Knative
	"podmonitors", "servicemonitors", // Prometheus Operator
	"rabbitmqcluster", // RabbitMQ Cluster Operator
}

var makeTarget = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)

func newCatalogue(t *testing.T) *catalogue {
	t.Helper()
	c := &catalogue{
		kinds: map[string]*apiextensionsv1.JSONSchemaProps{}, objects: map[string]bool{},
		literals: map[string]bool{}, targets: map[string]bool{}, makefile: read(t, "Makefile"),
	}
	for kind := range scheme.Scheme.AllKnownTypes() {
		plural, singular := meta.UnsafeGuessKindToResource(kind)
		c.kinds[plural.Resource], c.kinds[singular.Resource] = nil, nil
	}
	for _, name := range otherKinds {
		c.kinds[name] = nil
	}
	for _, m := range makeTarget.FindAllStringSubmatch(c.makefile, -1) {
		c.targets[m[1]] = true
	}
	for _, file := range tracked(t, "config/*.yaml") {
		if strings.HasPrefix(file, "config/overlays/") {
			continue // patches
		}
		for text := range strings.SplitSeq(read(t, file), "\n---") {
			c.addObject(t, file, text)
		}
	}
	for _, folder := range []string{"admission", "apis", "cli", "functions", "internal", "permission", "reconciler"} {
		for _, file := range tracked(t, folder+"/*.go") {
			if !strings.HasSuffix(file, "_test.go") {
				c.addLiterals(read(t, file))
			}
		}
	}
	return c
}

func (c *catalogue) addObject(t *testing.T, file, text string) {
	t.Helper()
	var o unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	kind := strings.ToLower(o.GetKind())
	if kind == "service" && strings.HasPrefix(o.GetAPIVersion(), "serving.knative.dev/") {
		kind = "ksvc"
	}
	c.objects[kind+"/"+o.GetName()] = true
	if kind != "customresourcedefinition" {
		return
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal([]byte(text), &crd); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	names := crd.Spec.Names
	for _, name := range append(names.ShortNames, names.Plural, names.Singular) {
		c.kinds[name] = crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	}
}

func (c *catalogue) addLiterals(source string) {
	var s scanner.Scanner
	set := token.NewFileSet()
	s.Init(set.AddFile("", set.Base(), len(source)), []byte(source), nil, 0)
	for {
		_, kind, text := s.Scan()
		if kind == token.EOF {
			return
		}
		if kind == token.STRING {
			if value, err := strconv.Unquote(text); err == nil {
				c.literals[value] = true
			}
		}
	}
}
