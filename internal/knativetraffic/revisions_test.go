package knativetraffic

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhichRevisionsGetRequests(t *testing.T) {
	for name, tc := range map[string]struct {
		service string
		want    []string
	}{
		"all at one":                     {`{"status":{"traffic":[{"revisionName":"a","latestRevision":true,"percent":100}]}}`, []string{"a"}},
		"a split":                        {`{"status":{"traffic":[{"revisionName":"b","percent":10},{"revisionName":"a","percent":90}]}}`, []string{"a", "b"}},
		"two entries of one":             {`{"status":{"traffic":[{"revisionName":"a","percent":50,"tag":"x"},{"revisionName":"a","percent":50}]}}`, []string{"a"}},
		"only a tag":                     {`{"status":{"traffic":[{"revisionName":"a","percent":100},{"revisionName":"b","tag":"next"}]}}`, []string{"a"}},
		"a share of 0":                   {`{"status":{"traffic":[{"revisionName":"a","percent":100},{"revisionName":"b","percent":0}]}}`, []string{"a"}},
		"the latest is not Ready yet":    {`{"status":{"latestCreatedRevisionName":"b","latestReadyRevisionName":"a","traffic":[{"revisionName":"a","percent":100}]}}`, []string{"a"}},
		"the traffic is not known":       {`{"status":{"latestCreatedRevisionName":"a"}}`, []string{"a"}},
		"the traffic is empty":           {`{"status":{"latestCreatedRevisionName":"a","traffic":[]}}`, []string{"a"}},
		"no Revision yet":                {`{"status":{}}`, nil},
		"no status yet":                  {`{}`, nil},
		"spec.traffic is only requested": {`{"spec":{"traffic":[{"revisionName":"a","percent":100}]}}`, nil},
		"it is being deleted": {`{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},
			"status":{"latestCreatedRevisionName":"a","traffic":[{"revisionName":"a","percent":100}]}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var service map[string]any
			if err := json.Unmarshal([]byte(tc.service), &service); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, RevisionsWithTraffic(service)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
