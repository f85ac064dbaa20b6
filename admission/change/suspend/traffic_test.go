package suspend

import (
	"fmt"
	"testing"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Revision b failed and a is good.
func TestAFailedRevisionGetsNoTraffic(t *testing.T) {
	const (
		record = `"traffic":{"failed":["b"],"to":"a"}`
		hold   = `{"attempt":2,` + record + `}`
		repair = `{"kind":"repair","suspend":"1",` + record + `}`
	)
	for name, tc := range map[string]struct {
		key, annotation string
		before, after   string
		want            bool
	}{
		"by name":                          {v1alpha1.HoldAnnotation, hold, `{"revisionName":"a","percent":100}`, `{"revisionName":"b","percent":100}`, true},
		"a part":                           {v1alpha1.HoldAnnotation, hold, `{"revisionName":"a","percent":100}`, `{"revisionName":"a","percent":90},{"revisionName":"b","percent":10}`, true},
		"as the latest":                    {v1alpha1.HoldAnnotation, hold, `{"revisionName":"a","percent":100}`, `{"latestRevision":true,"percent":100}`, true},
		"a tag":                            {v1alpha1.HoldAnnotation, hold, `{"revisionName":"a","percent":100}`, `{"revisionName":"a","percent":100},{"revisionName":"b","tag":"b"}`, false},
		"another Revision":                 {v1alpha1.HoldAnnotation, hold, `{"revisionName":"a","percent":100}`, `{"revisionName":"x","percent":100}`, false},
		"less than before":                 {v1alpha1.HoldAnnotation, hold, `{"latestRevision":true,"percent":100}`, `{"revisionName":"a","percent":50},{"revisionName":"b","percent":50}`, false},
		"as much as before":                {v1alpha1.HoldAnnotation, hold, `{"latestRevision":true,"percent":100}`, `{"latestRevision":true,"percent":100}`, false},
		"the repair as the latest":         {v1alpha1.BypassAnnotation, repair, `{"revisionName":"a","percent":100}`, `{"latestRevision":true,"percent":100}`, true},
		"the repair by name":               {v1alpha1.BypassAnnotation, repair, `{"revisionName":"a","percent":100}`, `{"revisionName":"c","percent":100}`, false},
		"as the latest, as before":         {v1alpha1.BypassAnnotation, repair, `{"latestRevision":true,"percent":100}`, `{"latestRevision":true,"percent":100}`, false},
		"by name, during the repair":       {v1alpha1.BypassAnnotation, repair, `{"revisionName":"a","percent":100}`, `{"revisionName":"b","percent":100}`, true},
		"after a repair of an earlier one": {v1alpha1.BypassAnnotation, `{"suspend":"0",` + record + `}`, `{"revisionName":"a","percent":100}`, `{"revisionName":"b","percent":100}`, false},
		"the latest, after that repair":    {v1alpha1.BypassAnnotation, `{"suspend":"0",` + record + `}`, `{"revisionName":"a","percent":100}`, `{"latestRevision":true,"percent":100}`, false},
		"none has failed, until judged":    {v1alpha1.HoldAnnotation, `{"attempt":2,"untilJudged":true,"traffic":{"to":"a"}}`, `{"revisionName":"a","percent":100}`, `{"latestRevision":true,"percent":100}`, false},
		"of a freeze by a person":          {v1alpha1.HoldAnnotation, `{"attempt":2}`, `{"revisionName":"a","percent":100}`, `{"revisionName":"b","percent":100}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			read := func(traffic string) *workload.Workload {
				w, err := workload.Read(workload.KnativeService, fmt.Appendf(nil, `{"metadata":{"name":"web","labels":{%q:"1"},"annotations":{%q:%q}},"spec":{"template":{},"traffic":[%s]}}`,
					v1alpha1.SuspendLabel, tc.key, tc.annotation, traffic))
				if err != nil {
					t.Fatal(err)
				}
				return w
			}
			if got := InputOf(admission.Change{Old: read(tc.before), New: read(tc.after)}).TrafficToFailedRevision; got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

// Scaling is admitted without a new version, so nobody but the mutating webhook writes a version on
// the template.
func TestTheReleaseOnATemplateIsPartOfTheHold(t *testing.T) {
	read := func(attempt string) *workload.Workload {
		w, err := workload.Read(workload.KnativeService, fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, v1alpha1.AttemptAnnotation, attempt))
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	for after, want := range map[string]bool{"2": false, "3": true} {
		if got := InputOf(admission.Change{Old: read("2"), New: read(after)}).SuspensionOrHoldChanged; got != want {
			t.Errorf("attempt %s: %t, want %t", after, got, want)
		}
	}
}
