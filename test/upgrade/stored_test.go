//go:build e2e

package upgrade

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// definitions is the resource of CRDs.
var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// stored returns the custom resources that nobody changes during the upgrade: those of suspended
// releases, settings, and of requests. They are read in every version that the API server serves. The
// keys are resource, namespace and name.
func (f *fixture) stored(ctx context.Context) (map[string]any, error) {
	list, err := f.dynamic.Resource(definitions).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for i := range list.Items {
		group, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", "names", "plural")
		versions, _, _ := unstructured.NestedSlice(list.Items[i].Object, "spec", "versions")
		if !slices.Contains([]string{"app.ops.cloud.alipay.com", "judge.breakwater.dev", "policy.kruise.io"}, group) {
			continue
		}
		for _, v := range versions {
			version, _ := v.(map[string]any)
			if served, _ := version["served"].(bool); !served {
				continue
			}
			name, _ := version["name"].(string)
			if err := f.read(ctx, schema.GroupVersionResource{Group: group, Version: name, Resource: plural}, out); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// read reads the objects of a resource.
func (f *fixture) read(ctx context.Context, resource schema.GroupVersionResource, into map[string]any) error {
	list, err := f.dynamic.Resource(resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list %s: %w", resource, err)
	}
	for i := range list.Items {
		o := &list.Items[i]
		if slices.Contains([]string{v1alpha1.SystemNamespace, heldNamespace, requestsNamespace}, o.GetNamespace()) {
			into[fmt.Sprint(resource, o.GetNamespace(), o.GetName())] = map[string]any{"uid": string(o.GetUID()), "spec": o.Object["spec"]}
		}
	}
	return nil
}

// compareStored returns an error if an object lost a value. A new version may add fields.
func compareStored(before, now map[string]any) (err error) {
	for key := range before {
		if !contains(now[key], before[key]) {
			err = errors.Join(err, fmt.Errorf("%s was %v, and is %v", key, before[key], now[key]))
		}
	}
	return err
}

// contains reports whether a JSON value has all fields of another one, with the same values.
func contains(now, before any) bool {
	switch before := before.(type) {
	case map[string]any:
		now, ok := now.(map[string]any)
		for key := range before {
			ok = ok && contains(now[key], before[key])
		}
		return ok
	case []any:
		now, ok := now.([]any)
		return ok && slices.EqualFunc(now, before, contains)
	default:
		return now == before
	}
}
