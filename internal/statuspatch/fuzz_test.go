package statuspatch

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// FuzzMergePatch turns one status into another. The patch applied to the first gives the
// second, names the resourceVersion, and contains no field of another writer.
func FuzzMergePatch(f *testing.F) {
	f.Add([]byte(`{}`), []byte(`{"changePodId":"n","submissions":[{"stage":"PRE"}]}`))
	f.Add([]byte(`{"verdicts":[{"nodeId":"n","verdict":"pass"}],"podResults":[{"pod":"a"}]}`), []byte(`{"podResults":[{"pod":"a","verdict":"fail"},{"pod":"b"}]}`))
	f.Add([]byte(`{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":null}],"status":"PreWait"}`), []byte(`{"conditions":[],"message":"\u0000"}`))
	f.Add([]byte(`{"annotations":{"a":"b","c":"d"},"observedGeneration":1}`), []byte(`{"annotations":{"a":"b"},"observedGeneration":9007199254740993}`))
	f.Fuzz(func(t *testing.T, rawBefore, rawAfter []byte) {
		before, after := &v1alpha1.ChangePod{}, &v1alpha1.ChangePod{}
		if json.Unmarshal(rawBefore, &before.Status) != nil || json.Unmarshal(rawAfter, &after.Status) != nil {
			return
		}
		before.Name, before.ResourceVersion = "batch", "7"
		for _, fields := range [][]string{ChangePodDerived, ChangePodSubmit, ChangePodVerdict} {
			checkPatch(t, before, after, fields)
		}
		checkPatch(t, before, after, slices.Concat(ChangePodDerived, ChangePodSubmit, ChangePodVerdict))
	})
}

func checkPatch(t *testing.T, before, after *v1alpha1.ChangePod, fields []string) {
	t.Helper()
	patch, err := mergePatch(before, after, fields)
	if errors.Is(err, ErrOtherWriter) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	stored, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	if patch != nil {
		if stored, err = jsonpatch.MergePatch(stored, patch); err != nil {
			t.Fatalf("apply %s: %v", patch, err)
		}
		var content struct {
			Metadata map[string]string          `json:"metadata"`
			Status   map[string]json.RawMessage `json:"status"`
		}
		if err := json.Unmarshal(patch, &content); err != nil || !cmp.Equal(content.Metadata, map[string]string{"resourceVersion": "7"}) {
			t.Errorf("metadata %v, %v in %s", content.Metadata, err, patch)
		}
		for field := range content.Status {
			if !slices.Contains(fields, field) {
				t.Errorf("field %s of another writer in %s", field, patch)
			}
		}
	}
	var got v1alpha1.ChangePod
	if err := json.Unmarshal(stored, &got); err != nil {
		t.Fatalf("%v: %s", err, stored)
	}
	// Encoding normalizes the status: times have the precision of the API.
	raw, err := json.Marshal(after)
	if err != nil {
		t.Fatal(err)
	}
	var want v1alpha1.ChangePod
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Status, got.Status, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +stored) by %s:\n%s", patch, diff)
	}
}
