package budget

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

var batchJob = schema.GroupKind{Group: "batch", Kind: "Job"}

// jobReplicas returns how many pods a Job with this parallelism wants: none while it is
// suspended or after it has ended, and no more than the completions that are left: those of indexes that failed
// are not, because these indexes get no more pods. Without completions the parallelism
// counts until the Job ends: the number of active pods falls with each deletion, so a
// budget that followed it would allow the deletion of all.
func jobReplicas(o *unstructured.Unstructured, parallelism int64) int64 {
	if suspended, _, err := unstructured.NestedBool(o.Object, "spec", "suspend"); err == nil && suspended {
		return 0
	}
	if ended(o) {
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
	indexes := func(field string) int64 {
		text, _, _ := unstructured.NestedString(o.Object, "status", field) // another type is no value
		return countIndexes(text, completions)
	}
	if mode, _, _ := unstructured.NestedString(o.Object, "spec", "completionMode"); mode == "Indexed" {
		succeeded = indexes("completedIndexes")
	}
	return min(parallelism, max(completions-succeeded-indexes("failedIndexes"), 0))
}

// ended reports whether a Job or BroadcastJob is complete or has failed. Then it creates no pods anymore.
func ended(o *unstructured.Unstructured) bool {
	status, _ := o.Object["status"].(map[string]any)
	return workload.HasCondition(status, "Complete", "True") || workload.HasCondition(status, "Failed", "True")
}

var broadcastJob = schema.GroupKind{Group: "apps.kruise.io", Kind: "BroadcastJob"}

// broadcastJobReplicas returns how many pods a BroadcastJob with this status.desired wants, which is its number of
// nodes: no more than its parallelism, and none after it has ended. If more are active, because the parallelism was
// lowered, they count. Nodes whose pod has ended count, too: owner.wants subtracts them.
func broadcastJobReplicas(o *unstructured.Unstructured, desired int64) int64 {
	if ended(o) {
		return 0
	}
	wanted := desired
	parallelism, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "parallelism")
	switch p := parallelism.(type) {
	case int64:
		wanted = min(wanted, p)
	case string:
		percentage := intstr.FromString(p)
		if n, err := intstr.GetScaledValueFromIntOrPercent(&percentage, int(desired), true); err == nil {
			wanted = min(wanted, int64(n))
		}
	}
	active, _, _ := unstructured.NestedInt64(o.Object, "status", "active") // another type is no value
	return max(wanted, min(active, desired), 0)
}

// paused reports whether a BroadcastJob is paused. Then it keeps the ended pods of removed nodes, so owner.wants cannot
// subtract the ended pods.
func paused(o *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase") // another type is no value
	return phase == "paused"
}

// countIndexes returns how many indexes below completions a text has: numbers and ranges in
// increasing order, such as "1,3-5". It returns 0 for an invalid text. (After completions is
// lowered, the text and status.succeeded still include higher indexes until the controller of Jobs removes them.)
func countIndexes(text string, completions int64) int64 {
	var count int64
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, errFrom := strconv.ParseInt(first, 10, 32)
		to, errTo := strconv.ParseInt(last, 10, 32)
		if errFrom != nil || errTo != nil || from > to {
			return 0
		}
		count += max(min(to, completions-1)-from+1, 0)
	}
	return count
}
