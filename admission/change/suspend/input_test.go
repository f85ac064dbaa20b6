package suspend

import (
	"fmt"
	"testing"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// With OnDelete a StatefulSet recreates deleted pods with the new version, with the largest partition with the
// former one.
func TestWhichUpdatesResumeAStoppedStatefulSet(t *testing.T) {
	const (
		held     = `{"type":"RollingUpdate","rollingUpdate":{"partition":2147483647}}`
		onDelete = `{"type":"OnDelete"}`
		rolling  = `{"type":"RollingUpdate","rollingUpdate":{"partition":0}}`
	)
	read := func(strategy string) *workload.Workload {
		w, err := workload.Read(workload.StatefulSet, fmt.Appendf(nil, `{"spec":{"updateStrategy":%s}}`, strategy))
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	for name, tc := range map[string]struct {
		before, after string
		want          bool
	}{
		"held, then OnDelete":    {held, onDelete, true},
		"held, then rolling":     {held, rolling, true},
		"OnDelete, then rolling": {onDelete, rolling, true},
		"OnDelete, then held":    {onDelete, held, false},
		"held":                   {held, held, false},
		"OnDelete":               {onDelete, onDelete, false},
		"rolling, then OnDelete": {rolling, onDelete, false},
	} {
		if got := InputOf(admission.Change{Old: read(tc.before), New: read(tc.after)}).SuspensionOrHoldChanged; got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

func TestAReferenceToATemplateIsNoTemplate(t *testing.T) {
	read := func(spec string) *workload.Workload {
		w, err := workload.Read(workload.Deployment, []byte(`{"spec":`+spec+`}`))
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	template, reference := read(`{"template":{"spec":{"containers":[{"name":"c"}]}}}`), read(`{"workloadRef":{"name":"d"}}`)
	if !InputOf(admission.Change{Old: template, New: reference}).NoTemplate || InputOf(admission.Change{Old: reference, New: template}).NoTemplate {
		t.Error("the template of the old object counts")
	}
}
