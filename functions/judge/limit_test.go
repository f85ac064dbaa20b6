package judge

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
)

// largeRecord returns the record of a release with many pods, whose names have the maximum length of a generated name.
func largeRecord(metrics int) judgev1alpha1.Record {
	r := judgev1alpha1.Record{Verdict: judgev1alpha1.VerdictFail, Final: true, Target: judgev1alpha1.Target{NewSince: map[string]metav1.Time{}}}
	var names []string
	for i := range maxPodNames {
		names = append(names, fmt.Sprintf("%s-%05d", strings.Repeat("a", maxGeneratedPrefix-1), i))
		r.Target.NewSince[names[i]] = metav1.Now()
	}
	matcher := `namespace="default",pod=~"` + strings.Join(names, "|") + `"`
	r.Target.New, r.Target.Old = matcher, matcher
	for i := range metrics {
		e := judgev1alpha1.Evidence{Name: fmt.Sprintf("metric-%d", i), Verdict: judgev1alpha1.VerdictPass, Message: strings.Repeat("m", maxMessage)}
		if i == 0 {
			e.Verdict = judgev1alpha1.VerdictFail
		}
		r.Metrics = append(r.Metrics, e)
	}
	return r
}

func TestTheEvidenceOfAReleaseWithManyPodsIsStored(t *testing.T) {
	if got := storable(largeRecord(3)).Metrics; len(got) != 3 || got[0].Verdict != judgev1alpha1.VerdictFail {
		t.Errorf("%d metrics are stored, want 3, the failed one first", len(got))
	}
}

// A ChangePod has two records, and etcd stores at most 1.5 MiB.
func TestARecordIsFarSmallerThanTheLimitOfEtcd(t *testing.T) {
	r := storable(largeRecord(100))
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(r.Metrics); len(raw) > 256<<10 || n == 0 || n == 100 || r.Metrics[0].Verdict != judgev1alpha1.VerdictFail {
		t.Errorf("%d bytes with %d metrics", len(raw), n)
	}
}
