package workload

import (
	"encoding/json"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
)

// FuzzRead reads workloads of each kind, stops and resumes them. A stopped workload is
// held, and a resumed one has the value that it had before.
func FuzzRead(f *testing.F) {
	for _, spec := range []string{
		`{}`, `{"paused":true}`, `{"paused":null,"replicas":3}`, `{"paused":"true"}`,
		`{"updateStrategy":{"type":"OnDelete"}}`, `{"updateStrategy":null}`,
		`{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":2147483647}}}`,
		`{"updateStrategy":{"rollingUpdate":{"partition":0.5}}}`, `{"updateStrategy":{"rollingUpdate":[1]}}`, `{"updateStrategy":{"rollingUpdate":"x"}}`,
		`{"updateStrategy":{"rollingUpdate":{"partition":9223372036854775808}}}`,
	} {
		f.Add([]byte(`{"metadata":{"name":"w","generation":2},"spec":`+spec+`,"status":{"observedGeneration":"2","replicas":3}}`), uint8(0))
		f.Add([]byte(`{"metadata":{"name":"w","generation":2},"spec":`+spec+`}`), uint8(1))
		f.Add([]byte(`{"metadata":{"name":"w"},"spec":`+spec+`}`), uint8(2))
	}
	kinds := BuiltIn()
	f.Fuzz(func(t *testing.T, raw []byte, index uint8) {
		kind := kinds[int(index)%len(kinds)]
		w, err := Read(kind, raw)
		if err != nil || w.pauseDepth < len(kind.PauseField.Path) && !extensible(raw, kind.PauseField.Path[:w.pauseDepth]) {
			return
		}
		if w.Complete && w.InProgress || w.PausedOrHeld() && !w.Stopped() {
			t.Errorf("%+v", w)
		}
		stopped := w.apply(t, raw, w.Stop())
		held := read1(t, kind, stopped)
		if !held.Stopped() || held.Stop() != nil {
			t.Fatalf("not stopped: %s", stopped)
		}
		if w.Stopped() {
			return
		}
		resumed := read1(t, kind, held.apply(t, stopped, held.Resume(w.PauseValue)))
		if diff := cmp.Diff(w.PauseValue, resumed.PauseValue); diff != "" || resumed.Stopped() {
			t.Errorf("(-before +resumed), stopped %t:\n%s", resumed.Stopped(), diff)
		}
	})
}

// extensible reports whether a field can be added below the path. The schemas of the
// kinds have objects there.
func extensible(raw []byte, path []string) bool {
	var content map[string]any
	if json.Unmarshal(raw, &content) != nil {
		return false
	}
	at := any(content)
	for _, name := range path {
		at = at.(map[string]any)[name]
	}
	_, ok := at.(map[string]any)
	return ok
}

func read1(t *testing.T, kind Kind, raw []byte) *Workload {
	t.Helper()
	w, err := Read(kind, raw)
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return w
}

// apply applies operations as the API server does.
func (w *Workload) apply(t *testing.T, raw []byte, operations []Operation) []byte {
	t.Helper()
	encoded, err := json.Marshal(operations)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if len(patch) == 0 {
		return raw
	}
	out, err := patch.Apply(raw)
	if err != nil {
		t.Fatalf("apply %s to %s: %v", encoded, raw, err)
	}
	return out
}
