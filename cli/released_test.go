package cli

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
)

func TestTheOutputOfAReleaseSaysWhatTheCommandDid(t *testing.T) {
	bypass := func(kind v1alpha1.BypassKind) []builder.Option {
		return []builder.Option{builder.Label(v1alpha1.SuspendLabel, "1"), builder.Bypassed(v1alpha1.Bypass{Kind: kind, Suspend: "1", Attempt: 2})}
	}
	for name, tc := range map[string]struct {
		after        []builder.Option
		action, want string
	}{
		"a release":                  {nil, "release", "deployment/sleep: release "},
		"a repair":                   {bypass(v1alpha1.BypassRepair), "release", "deployment/sleep: repair of the suspension: release "},
		"a rollback":                 {nil, "rolled back to version", "deployment/sleep: rolled back to version "},
		"a rollback of a suspension": {bypass(v1alpha1.BypassRollback), "rolled back to version", "deployment/sleep: rolled back to version "},
		"a repair command with a former template": {bypass(v1alpha1.BypassRollback), "release", "deployment/sleep: release "},
	} {
		before, after := at(1, "busybox:1"), at(2, "busybox:2", tc.after...)
		c := cluster(t, optedIn, before)
		target, err := c.workload(t.Context(), "deployment/sleep")
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		a := &app{IOStreams: genericiooptions.IOStreams{Out: &out}}
		if err := a.printReleased(c, target, unstructuredOf(t, after), tc.action); err != nil {
			t.Fatal(err)
		}
		if want := tc.want + builder.Version(after) + " attempt 2; `"; !strings.HasPrefix(out.String(), want) {
			t.Errorf("%s: printed %q, want %q", name, out.String(), want)
		}
	}
}
