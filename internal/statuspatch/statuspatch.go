// Package statuspatch writes the status of an object that several writers
// share, so that none overwrites another. A writer names the fields that it
// owns; docs/architecture.md has the table of writers. Each write is a JSON
// merge patch of these fields with the resourceVersion that the decision was
// based on. A write in between makes it a conflict, and the writer decides again.
package statuspatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Fields of a ChangePod's status, by writer.
var (
	ChangePodDerived = []string{"conditions", "observedGeneration", "status", "message",
		"updateTime", "updateTimeUnix", "preTimeoutThreshold", "postTimeOutThreshold"}
	ChangePodSubmit = []string{"changePodId", "preSubmitTime", "preSubmitTimeUnix",
		"postSubmitTime", "postSubmitTimeUnix", "submissions"}
	ChangePodVerdict = []string{"verdicts", "podResults"}
	// ChangePodFinish and ChangePodEnd are written by function verdict together with a verdict:
	// the intent of the finish of the batch, as function submit writes it, or the end of the batch, as
	// the ChangePod reconciler derives it.
	ChangePodFinish = []string{"changePodId", "postSubmitTime", "postSubmitTimeUnix", "submissions"}
	ChangePodEnd    = []string{"conditions", "observedGeneration", "status", "message", "updateTime", "updateTimeUnix"}
	// ChangePodJudge is written by function verdict, too, for judges other than the server.
	ChangePodJudge = []string{"judges"}
	// ChangePodRecord is written by function judge.
	ChangePodRecord = []string{"metricRecord", "probation"}
)

// Fields of a ChangeWorkload's status, by writer.
var (
	ChangeWorkloadDerived = []string{"conditions", "observedGeneration", "status",
		"defensePreparingPods", "defenseCheckingPods", "defenseCheckPassPods", "defenseCheckFailPods",
		"counts", "entryTime", "entryTimeUnix", "updateTime", "updateTimeUnix", "orderStep", "announcements", "probation", "rolledOutPods",
		"succeededWithoutPods"}
	ChangeWorkloadSubmit  = []string{"order"}
	ChangeWorkloadVerdict = []string{"orderVerdicts"}
	// ChangeWorkloadInbox is written by callback, deadletter (add) and the
	// ChangeWorkload reconciler (remove).
	ChangeWorkloadInbox = []string{"inbox"}
	// ChangeWorkloadSavedTemplate is written by the savedtemplates reconciler.
	ChangeWorkloadSavedTemplate = []string{"keptAs"}
	// ChangeWorkloadRollback is written by the Rollback reconciler. It adds
	// announcements, which the ChangeWorkload reconciler adds too, and removes.
	ChangeWorkloadRollback = []string{"rollback", "announcements"}
)

// OpsConfigInfoDerived are the fields of an OpsConfigInfo's status.
var OpsConfigInfoDerived = []string{"conditions", "observedGeneration"}

// ErrOtherWriter is the error of a decision that changes a field which the
// writer does not own. It is a mistake in the code.
var ErrOtherWriter = errors.New("the field has another writer")

// Object is an object of Breakwater's API groups.
type Object interface {
	metav1.Object
	GetGroupVersionKind() schema.GroupVersionKind
}

// Patcher patches objects of one kind in one namespace. The generated clients
// are Patchers.
type Patcher[T any] interface {
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error)
}

// Write turns the stored status of before into that of after, and returns the
// object as it is stored. If nothing differs it sends no request. The API server
// answers with a conflict if the stored object differs from before, or if another
// object has its name now.
func Write[T Object](ctx context.Context, client Patcher[T], manager string, before, after T, fields []string) (T, error) {
	patch, err := mergePatch(before, after, fields)
	if err != nil || patch == nil {
		return before, err
	}
	stored, err := client.Patch(ctx, before.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager}, "status")
	if err != nil {
		return before, fmt.Errorf("write the status of %s %s/%s: %w",
			before.GetGroupVersionKind().Kind, before.GetNamespace(), before.GetName(), err)
	}
	return stored, nil
}

// mergePatch returns the patch from before's status to after's, or nil if nothing
// differs. It contains each of the fields as a whole, because an incomplete value, for
// example of counts, does not satisfy the schema of a new object. A removed field is
// null.
func mergePatch(before, after metav1.Object, fields []string) ([]byte, error) {
	old, err := statusOf(before)
	if err != nil {
		return nil, err
	}
	all, err := statusOf(after)
	if err != nil {
		return nil, err
	}
	raw, err := jsonpatch.CreateMergePatch(old, all)
	if err != nil {
		return nil, fmt.Errorf("compare the status of %s: %w", before.GetName(), err)
	}
	var diff, whole map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(raw, &diff), json.Unmarshal(all, &whole)); err != nil {
		return nil, fmt.Errorf("compare the status of %s: %w", before.GetName(), err)
	}
	if len(diff) == 0 {
		return nil, nil
	}
	for field := range diff {
		if !slices.Contains(fields, field) {
			return nil, fmt.Errorf("status.%s of %s: %w", field, before.GetName(), ErrOtherWriter)
		}
	}
	maps.DeleteFunc(whole, func(field string, _ json.RawMessage) bool { return !slices.Contains(fields, field) })
	body, err := json.Marshal(whole)
	if err != nil {
		return nil, fmt.Errorf("encode the status of %s: %w", before.GetName(), err)
	}
	if body, err = jsonpatch.MergeMergePatches(body, raw); err != nil {
		return nil, fmt.Errorf("compare the status of %s: %w", before.GetName(), err)
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]string{"resourceVersion": before.GetResourceVersion()},
		"status":   json.RawMessage(body),
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
