// Package statuspatch builds the two kinds of write that the status of our
// objects sees, so that many writers share one status and none overwrites
// another:
//
//   - Facts: what happened outside. Functions and people write them, by
//     compare-and-swap: a JSON merge patch of their own fields that carries the
//     resourceVersion it was decided on.
//   - Derived: what follows from facts and deadlines. Only the object's
//     reconciler writes it, by server-side apply of its own fields, with the
//     resourceVersion too.
//
// Both take the list of fields that the caller writes, which makes the table
// of writers in docs/architecture.md part of the code.
package statuspatch

import (
	"encoding/json"
	"fmt"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Fields of a ChangePod's status, by writer.
var (
	ChangePodDerived = []string{"conditions", "observedGeneration", "status", "message",
		"updateTime", "updateTimeUnix", "preTimeoutThreshold", "postTimeOutThreshold"}
	ChangePodSubmit = []string{"changePodId", "preSubmitTime", "preSubmitTimeUnix",
		"postSubmitTime", "postSubmitTimeUnix", "submissions"}
	ChangePodVerdict = []string{"verdicts", "podResults"}
)

// Fields of a ChangeWorkload's status, by writer.
var (
	ChangeWorkloadDerived = []string{"conditions", "observedGeneration", "status",
		"defensePreparingPods", "defenseCheckingPods", "defenseCheckPassPods", "defenseCheckFailPods",
		"counts", "entryTime", "entryTimeUnix", "updateTime", "updateTimeUnix", "orderStep"}
	ChangeWorkloadSubmit  = []string{"order"}
	ChangeWorkloadVerdict = []string{"orderVerdicts"}
	// ChangeWorkloadInbox is written by callback, deadletter (add) and the
	// ChangeWorkload reconciler (remove).
	ChangeWorkloadInbox = []string{"inbox"}
	// ChangeWorkloadHistory is written by the History reconciler.
	ChangeWorkloadHistory = []string{"keptAs"}
	// ChangeWorkloadRollback is written by the Rollback reconciler.
	ChangeWorkloadRollback = []string{"rollback"}
)

// OpsConfigInfoDerived are the fields of an OpsConfigInfo's status.
var OpsConfigInfoDerived = []string{"conditions", "observedGeneration"}

// Object is any object of ours.
type Object interface {
	metav1.Object
	GetGroupVersionKind() schema.GroupVersionKind
}

// Facts returns the JSON merge patch that turns before's status into after's,
// or nil if nothing differs. It carries before's resourceVersion, so the API
// server refuses it with a conflict when anybody has written since. A
// difference in a field that is not in fields is a mistake of the caller and
// an error.
func Facts(before, after metav1.Object, fields []string) ([]byte, error) {
	old, err := statusOf(before)
	if err != nil {
		return nil, err
	}
	changed, err := statusOf(after)
	if err != nil {
		return nil, err
	}
	raw, err := jsonpatch.CreateMergePatch(old, changed)
	if err != nil {
		return nil, fmt.Errorf("compare the status of %s: %w", before.GetName(), err)
	}
	diff := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &diff); err != nil {
		return nil, fmt.Errorf("compare the status of %s: %w", before.GetName(), err)
	}
	if len(diff) == 0 {
		return nil, nil
	}
	for field := range diff {
		if !slices.Contains(fields, field) {
			return nil, fmt.Errorf("status.%s of %s has another writer", field, before.GetName())
		}
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]string{"resourceVersion": before.GetResourceVersion()},
		"status":   diff,
	})
}

// Derived returns the body of a server-side apply on /status that sets the
// given fields to what obj has and takes back those of them that it has not.
// It carries obj's resourceVersion, so the API server refuses it with a
// conflict when obj was not the newest, or when its name by now belongs to
// another object: on /status a UID would not be looked at, and what an earlier
// attempt ended as would become the state of the next one.
func Derived(obj Object, fields []string) ([]byte, error) {
	raw, err := statusOf(obj)
	if err != nil {
		return nil, err
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("read the status of %s: %w", obj.GetName(), err)
	}
	status := map[string]json.RawMessage{}
	for _, field := range fields {
		if value, ok := all[field]; ok {
			status[field] = value
		}
	}
	gvk := obj.GetGroupVersionKind()
	return json.Marshal(map[string]any{
		"apiVersion": gvk.GroupVersion().String(),
		"kind":       gvk.Kind,
		"metadata": map[string]string{
			"name": obj.GetName(), "namespace": obj.GetNamespace(), "resourceVersion": obj.GetResourceVersion(),
		},
		"status": status,
	})
}

// statusOf returns the JSON of obj.status.
func statusOf(obj metav1.Object) ([]byte, error) {
	raw, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", obj.GetName(), err)
	}
	var shape struct {
		Status json.RawMessage `json:"status"`
	}
	if err := json.Unmarshal(raw, &shape); err != nil {
		return nil, fmt.Errorf("encode %s: %w", obj.GetName(), err)
	}
	if shape.Status == nil {
		return []byte("{}"), nil
	}
	return shape.Status, nil
}
