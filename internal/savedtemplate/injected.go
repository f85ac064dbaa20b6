package savedtemplate

import (
	"bytes"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// rolloutHashLabel is the label that Argo Rollouts adds to the template of a ReplicaSet.
const rolloutHashLabel = "rollouts-pod-template-hash"

// ephemeralMetadataAnnotation is the annotation of a ReplicaSet with the labels and annotations that Argo Rollouts has added
// to the template (canaryMetadata and stableMetadata, for example), as JSON.
const ephemeralMetadataAnnotation = "rollout.argoproj.io/ephemeral-metadata"

// removeInjected removes what Argo Rollouts has added to the template of a ReplicaSet, as Argo Rollouts does before it
// compares the template with that of the Rollout: otherwise the template would be that of a new revision.
func removeInjected(set *unstructured.Unstructured, template map[string]any) {
	var injected struct{ Labels, Annotations map[string]any }
	_ = json.Unmarshal([]byte(set.GetAnnotations()[ephemeralMetadataAnnotation]), &injected) // Argo ignores an invalid one, too
	for key := range injected.Labels {
		unstructured.RemoveNestedField(template, "metadata", "labels", key)
	}
	for key := range injected.Annotations {
		unstructured.RemoveNestedField(template, "metadata", "annotations", key)
	}
	removeAntiAffinity(template, "requiredDuringSchedulingIgnoredDuringExecution")
	removeAntiAffinity(template, "preferredDuringSchedulingIgnoredDuringExecution")
}

// removeAntiAffinity removes the terms of a field of the anti-affinity that select pods by rolloutHashLabel, and the
// fields that are empty then.
func removeAntiAffinity(template map[string]any, field string) {
	path := []string{"spec", "affinity", "podAntiAffinity", field}
	terms, _, _ := unstructured.NestedSlice(template, path...)
	kept := slices.DeleteFunc(slices.Clone(terms), func(term any) bool {
		raw, err := json.Marshal(term)
		return err == nil && bytes.Contains(raw, []byte(`"key":"`+rolloutHashLabel+`"`))
	})
	switch {
	case len(kept) == len(terms):
		return
	case len(kept) > 0:
		_ = unstructured.SetNestedSlice(template, kept, path...) // its parents are maps, as NestedSlice has found it
		return
	}
	for ; len(path) > 1; path = path[:len(path)-1] {
		unstructured.RemoveNestedField(template, path...)
		if parent, _, _ := unstructured.NestedMap(template, path[:len(path)-1]...); len(parent) > 0 {
			return
		}
	}
}
