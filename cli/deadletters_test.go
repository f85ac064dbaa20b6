package cli

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/breakwater-dev/breakwater/cli/diagnosis"
)

// The names are arguments of command replay.
func TestTheNamesOfDeadLettersAreThoseThatCanBeReplayed(t *testing.T) {
	letters := []diagnosis.DeadLetter{
		{Object: "changeworkload/inbox"},
		{Name: "wakeup", Object: "changeworkload/web"},
		{Name: "replayed", Object: "deployment/web", Replay: diagnosis.Replayed},
		{Name: "report", Object: "deployment/web", Replay: diagnosis.ReplayPossible},
	}
	var out bytes.Buffer
	if err := (&app{IOStreams: genericiooptions.IOStreams{Out: &out}}).printDeadLetters("name", letters); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("report\n", out.String()); diff != "" {
		t.Error(diff)
	}
}
