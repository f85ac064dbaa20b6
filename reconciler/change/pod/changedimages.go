package pod

import (
	"bytes"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// changedImages returns those containers of a pod, or of the template of a ReplicaSet, whose image
// was changed after the object was created, with name and image only. It also returns the
// managedFields that show it, so that a cache may trim the object again. Nearly all objects have
// none.
//
// The client that creates an object owns the name and the image of each container, and loses the
// image when another client changes it. The API server records the owners before webhooks change
// the object: an image that a webhook rewrites at the creation is still that of the creator, and a
// container that a webhook adds has no owner. A client that creates pods and updates them in
// place, as OpenKruise does, stays the owner.
func changedImages(of *corev1.PodSpec, entries []metav1.ManagedFieldsEntry) (corev1.PodSpec, []metav1.ManagedFieldsEntry) {
	var changed corev1.PodSpec
	entries = ofContainers(entries)
	if len(entries) < 2 {
		return changed, nil // only the creator wrote the containers
	}
	for _, e := range entries {
		var owned ownedFields
		// An Apply owns the name of each container that it changes, so it does not show who the creator is.
		if e.Operation != metav1.ManagedFieldsOperationUpdate || json.Unmarshal(e.FieldsV1.Raw, &owned) != nil {
			continue
		}
		s, t := owned.Spec, owned.Spec.Template.Spec
		changed.Containers = append(changed.Containers, imageNotOwned(of.Containers, s.Containers, t.Containers)...)
		changed.InitContainers = append(changed.InitContainers, imageNotOwned(of.InitContainers, s.InitContainers, t.InitContainers)...)
	}
	if len(changed.Containers)+len(changed.InitContainers) == 0 {
		return changed, nil
	}
	return changed, entries
}

// ofContainers returns the entries of the main resource that have fields of containers.
func ofContainers(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var out []metav1.ManagedFieldsEntry
	for _, e := range entries {
		if e.Subresource == "" && e.FieldsV1 != nil &&
			(bytes.Contains(e.FieldsV1.Raw, []byte(`"f:containers"`)) || bytes.Contains(e.FieldsV1.Raw, []byte(`"f:initContainers"`))) {
			out = append(out, e)
		}
	}
	return out
}

// ownedFields are the fields of containers of an entry of managedFields.
type ownedFields struct {
	Spec struct {
		ownedContainers
		Template struct {
			Spec ownedContainers `json:"f:spec"`
		} `json:"f:template"`
	} `json:"f:spec"`
}

// ownedContainers has the fields of each container by its key, such as k:{"name":"app"}.
type ownedContainers struct {
	Containers     map[string]map[string]json.RawMessage `json:"f:containers"`
	InitContainers map[string]map[string]json.RawMessage `json:"f:initContainers"`
}

// imageNotOwned returns the containers of which an entry owns the name, but not the image, each
// with its name and image. The entry is that of a pod or that of a ReplicaSet.
func imageNotOwned(all []corev1.Container, entry ...map[string]map[string]json.RawMessage) []corev1.Container {
	var out []corev1.Container
	for i := range all {
		key := `k:{"name":"` + all[i].Name + `"}`
		if slices.ContainsFunc(entry, func(owned map[string]map[string]json.RawMessage) bool {
			_, name := owned[key]["f:name"]
			_, image := owned[key]["f:image"]
			return name && !image
		}) {
			out = append(out, corev1.Container{Name: all[i].Name, Image: all[i].Image})
		}
	}
	return out
}
