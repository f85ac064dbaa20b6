package budget

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var batchJob = schema.GroupKind{Group: "batch", Kind: "Job"}

// jobReplicas returns how many pods a Job with this parallelism wants: none while it is
// suspended, and no more than the completions that are left. Without completions the
// parallelism counts until the Job ends: the number of active pods falls with each
// deletion, so a budget that followed it would allow the deletion of all.
func jobReplicas(o *unstructured.Unstructured, parallelism int64) int64 {
	if suspended, _, err := unstructured.NestedBool(o.Object, "spec", "suspend"); err == nil && suspended {
		return 0
	}
	completions, found, err := unstructured.NestedInt64(o.Object, "spec", "completions")
	if err != nil || !found {
		return parallelism
	}
	succeeded, _, err := unstructured.NestedInt64(o.Object, "status", "succeeded")
	if err != nil {
		return parallelism
	}
	return min(parallelism, max(completions-succeeded, 0))
}
