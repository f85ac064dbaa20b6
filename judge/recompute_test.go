package judge

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
)

// A metric that Prometheus cannot answer has the verdict of one with too little data, but no values.
func TestAValueThatOnlyOneRecordHasIsADifference(t *testing.T) {
	value := &v1alpha1.Side{Value: "0.5"}
	without := v1alpha1.Evidence{Name: "errors", Verdict: v1alpha1.VerdictNone}
	withNew, withOld := without, without
	withNew.New, withOld.Old = value, value
	for name, tc := range map[string]struct {
		recorded, again v1alpha1.Evidence
		want            []string
	}{
		"new, only recorded":   {withNew, without, []string{"errors: new value 0.5, recomputed none"}},
		"new, only recomputed": {without, withNew, []string{"errors: new value none, recomputed 0.5"}},
		"old, only recorded":   {withOld, without, []string{"errors: old value 0.5, recomputed none"}},
		"old, only recomputed": {without, withOld, []string{"errors: old value none, recomputed 0.5"}},
		"neither":              {without, without, nil},
	} {
		t.Run(name, func(t *testing.T) {
			record := func(e v1alpha1.Evidence) v1alpha1.Record { return v1alpha1.Record{Metrics: []v1alpha1.Evidence{e}} }
			if diff := cmp.Diff(tc.want, Differences(record(tc.recorded), record(tc.again))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
