// Package apidiscovery asks the API server for its resources. CRDs may be
// created and deleted while a process runs.
package apidiscovery

import (
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// KindOf returns the kind of a namespaced resource; empty if the API server
// does not have it.
func KindOf(client discovery.ServerResourcesInterface, resource schema.GroupVersionResource) (string, error) {
	list, err := client.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if apierrs.IsNotFound(err) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	for _, r := range list.APIResources {
		if r.Name == resource.Resource && r.Namespaced {
			return r.Kind, nil
		}
	}
	return "", nil
}
