package statuspatch

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func changePod() *v1alpha1.ChangePod {
	return &v1alpha1.ChangePod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns", UID: "u", ResourceVersion: "7"},
		Status: v1alpha1.ChangePodStatus{
			Phase:      v1alpha1.BatchPreWait,
			PodResults: []v1alpha1.PodSummary{{Pod: "p"}},
		},
	}
}

func TestAPatchHasTheOwnedFieldsAndTheVersionOfItsDecision(t *testing.T) {
	after := changePod()
	after.Status.ChangePodID = "node-1"
	got, err := mergePatch(changePod(), after, ChangePodSubmit)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"metadata":{"resourceVersion":"7"},"status":{"changePodId":"node-1"}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestADecisionThatChangesNothingIsNotWritten(t *testing.T) {
	got, err := mergePatch(changePod(), changePod(), ChangePodSubmit)
	if err != nil || got != nil {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestAChangedFieldOfAnotherWriterIsAnError(t *testing.T) {
	after := changePod()
	after.Status.Phase = v1alpha1.BatchExecuteDone
	_, err := mergePatch(changePod(), after, ChangePodSubmit)
	if !errors.Is(err, ErrOtherWriter) || !strings.Contains(err.Error(), "status.status") {
		t.Errorf("got %v", err)
	}
}

func TestAPatchReplacesADerivedFieldThatAPersonWrote(t *testing.T) {
	before, after := changePod(), changePod()
	before.Status.Message = "PostFinish"
	got, err := mergePatch(before, after, ChangePodDerived)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"metadata":{"resourceVersion":"7"},"status":{"message":"","status":"PreWait"}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestAPatchOfANewObjectSatisfiesItsSchema(t *testing.T) {
	after := &v1alpha1.ChangeWorkload{}
	after.Status.Counts.Pods = 2
	got := stored(t, `{"status":{"inbox":[{"id":"a"}]}}`, &v1alpha1.ChangeWorkload{}, after)
	// Counts requires each of its numbers.
	want := map[string]any{"inbox": []any{map[string]any{"id": "a"}}, "counts": map[string]any{
		"pods": 2.0, "preparing": 0.0, "checking": 0.0, "passed": 0.0, "failed": 0.0, "unjudged": 0.0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAPatchRemovesFieldsListsAndNestedFieldsThatVanish(t *testing.T) {
	before, after := &v1alpha1.ChangeWorkload{}, &v1alpha1.ChangeWorkload{}
	before.Status.Phase = v1alpha1.ReleaseSuspend
	before.Status.DefenseCheckingPods = []v1alpha1.PodSummary{{Pod: "a", IP: "1"}, {Pod: "b"}}
	before.Status.DefenseCheckFailPods = []v1alpha1.PodSummary{{Pod: "c"}}
	before.Status.OrderStep = &v1alpha1.OrderStep{Name: v1alpha1.OrderStepClose, Since: metav1.Unix(1, 0), State: v1alpha1.OrderSuccess}
	after.Status.DefenseCheckingPods = []v1alpha1.PodSummary{{Pod: "a"}}
	after.Status.OrderStep = &v1alpha1.OrderStep{Name: v1alpha1.OrderStepStart, Since: metav1.Unix(1, 0)}
	raw, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	want, err := statusOf(after)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(stored(t, string(raw), before, after))
	if err != nil {
		t.Fatal(err)
	}
	if !jsonpatch.Equal(want, got) {
		t.Errorf("want %s, got %s", want, got)
	}
}

// stored returns the status of raw after the patch of its derived fields.
func stored(t *testing.T, raw string, before, after *v1alpha1.ChangeWorkload) map[string]any {
	t.Helper()
	patch, err := mergePatch(before, after, ChangeWorkloadDerived)
	if err != nil {
		t.Fatal(err)
	}
	merged, err := jsonpatch.MergePatch([]byte(raw), patch)
	if err != nil {
		t.Fatal(err)
	}
	var out struct {
		Status map[string]any `json:"status"`
	}
	if err := json.Unmarshal(merged, &out); err != nil {
		t.Fatal(err)
	}
	return out.Status
}
