package altershielddouble

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
)

// persistent is a fixture whose double stores its state in the file.
func persistent(t *testing.T, file string, change func(*Options)) *fixture {
	t.Helper()
	f := newFixture(t, change)
	if err := f.Persist(file); err != nil {
		t.Fatal(err)
	}
	return f
}

// killed copies the state file of a double to a new file, as if the double was
// killed now.
func killed(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// An incomplete write.
	raw = append(raw, `{"node":{"ID":"node-`...)
	other := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(other, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return other
}

// awaitState waits until a node has a state.
func (f *fixture) awaitState(t *testing.T, id string, want State) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		return slices.ContainsFunc(f.Nodes(), func(n Node) bool { return n.ID == id && n.State == want }), nil
	})
	if err != nil {
		t.Fatalf("node %s has not the state %s: %v", id, want, err)
	}
}

func TestAKilledDoubleContinuesFromItsState(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	first := persistent(t, file, nil)
	first.setScript(t, `{"checks":[{"match":{"stage":"PRE"},"then":{"verdict":"fail"}}],"default":{"delay":"5s","verdict":"xyz"}}`)
	node := first.started(t)
	first.await(t)
	first.idle(t)
	if a := first.call(t, actionFinish, nodeBody(node, nil)); a.code() != "000" {
		t.Fatal(a.raw)
	}
	first.awaitState(t, node, PostRuns) // it begins after the answer
	second := persistent(t, killed(t, file), nil)
	if diff := cmp.Diff(first.Nodes(), second.Nodes()); diff != "" {
		t.Error("nodes: (-was +is)", diff)
	}
	if diff := cmp.Diff(first.Orders(), second.Orders()); diff != "" {
		t.Error("orders: (-was +is)", diff)
	}
	if diff := cmp.Diff(first.Log(), second.Log()); diff != "" {
		t.Error("log: (-was +is)", diff)
	}
	if a := second.call(t, actionOpenOrder, orderBody(nil)); a.code() != "106" {
		t.Errorf("the order is unknown: %s", a.raw)
	}
	second.step(t, 5*time.Second)
	second.await(t)
	second.idle(t)
	got := second.bodies(t)
	if len(got) != 1 || got[0].CallbackRequest.NodeID != node || got[0].CallbackRequest.DefenseStageEnum != Post ||
		got[0].CallbackRequest.Verdict.Verdict != "xyz" {
		t.Errorf("the callback of the restarted check is %+v", got)
	}
	if third := persistent(t, killed(t, second.file.Name()), nil); len(third.Log().Callbacks) != 2 {
		t.Errorf("the log is %+v", third.Log().Callbacks)
	}
}

func TestACallbackThatWasBeingSentIsNotSentAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	first := persistent(t, file, nil)
	first.setScript(t, `{"default":{"copies":2,"copyEvery":"5s"}}`)
	node := first.started(t)
	first.await(t)
	first.step(t, 0) // returns during the pause between the copies
	between := killed(t, file)
	first.step(t, 5*time.Second)
	first.await(t)
	first.idle(t)

	for name, state := range map[string]string{"between the copies": between, "after them": killed(t, file)} {
		second := persistent(t, state, nil)
		second.idle(t)
		if got := second.bodies(t); len(got) != 0 {
			t.Errorf("%s: sent again: %+v", name, got)
		}
	}
	raw, err := os.ReadFile(between)
	if err != nil {
		t.Fatal(err)
	}
	// The result of the first copy was not recorded.
	cut := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(cut, withoutSent(raw), 0o600); err != nil {
		t.Fatal(err)
	}
	log := persistent(t, cut, nil).Log()
	if len(log.Callbacks) != 1 || log.Callbacks[0].Node != node || log.Callbacks[0].Status != 0 || log.Callbacks[0].Error == "" {
		t.Errorf("the log entry of a callback without an answer is %+v", log.Callbacks)
	}
}

// withoutSent drops the records of callbacks that were answered.
func withoutSent(raw []byte) []byte {
	var out []byte
	for line := range bytes.Lines(raw) {
		if !bytes.HasPrefix(line, []byte(`{"sent":`)) {
			out = append(out, line...)
		}
	}
	return out
}

func TestDeleteTruncatesTheStateFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	first := persistent(t, file, nil)
	first.started(t)
	first.Reset()
	second := persistent(t, killed(t, file), nil)
	if n := len(second.Nodes()) + len(second.Orders()) + len(second.Log().Calls); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}
