package events

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func TestMessagesAreTruncatedUntilTheDataFits(t *testing.T) {
	pass := func(v *ChangePodVerdict, results []v1alpha1.PodSummary) { v.Verdict, v.PodResults = "pass", results }
	many := func(n int, verdict string) []v1alpha1.PodSummary {
		var out []v1alpha1.PodSummary
		for i := range n {
			out = append(out, v1alpha1.PodSummary{
				Pod: "sleep-7d9c5b4f5d-" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)), Verdict: verdict,
				Message: strings.Repeat("<reason> ", 500),
			})
		}
		return out
	}
	for name, tc := range map[string]struct {
		change func(*ChangePodVerdict)
		want   int // results
		err    bool
	}{
		"long message":                     {func(v *ChangePodVerdict) { v.Message = strings.Repeat("ä", 10_000) }, 2, false},
		"control characters":               {func(v *ChangePodVerdict) { v.Message = strings.Repeat("\x01", 10_000) }, 2, false},
		"not UTF-8":                        {func(v *ChangePodVerdict) { v.Message = strings.Repeat("\xff", 10_000) }, 2, false},
		"long messages of results":         {func(v *ChangePodVerdict) { v.PodResults = many(40, "pass") }, 40, false},
		"too many redundant results":       {func(v *ChangePodVerdict) { v.PodResults = append(many(300, "fail"), v.PodResults[1]) }, 2, false},
		"fail of more passes than fit":     {func(v *ChangePodVerdict) { v.PodResults = append(many(90, "pass"), v.PodResults[0]) }, 1, false},
		"fail of more passes than allowed": {func(v *ChangePodVerdict) { v.PodResults = append(many(101, "pass"), v.PodResults[0]) }, 1, false},
		"more fails and passes than allowed": {func(v *ChangePodVerdict) {
			passes := many(101, "pass")
			for i := range passes {
				passes[i].Pod = "passes-" + passes[i].Pod
			}
			v.PodResults = append(many(101, "fail"), passes...)
		}, 1, false},
		"pass of more fails than fit":     {func(v *ChangePodVerdict) { pass(v, many(90, "fail")) }, 0, true},
		"pass of more fails than allowed": {func(v *ChangePodVerdict) { pass(v, many(101, "fail")) }, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			v := verdict()
			tc.change(&v)
			e, err := New(v)
			if tc.err {
				if err == nil {
					t.Fatalf("no error for %d bytes", len(e.Data()))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(e.Data()) > MaxData {
				t.Errorf("%d bytes of data", len(e.Data()))
			}
			got, err := ParseChangePodVerdict(e)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.PodResults) != tc.want || got.ID() != e.ID() {
				t.Errorf("%d results, want %d; id %q of event %q", len(got.PodResults), tc.want, got.ID(), e.ID())
			}
		})
	}
}

// Otherwise the fail would be lost: the server does not repeat a verdict.
func TestAFailWhoseResultsDoNotFitKeepsItsMessageAndItsFails(t *testing.T) {
	for name, results := range map[string]int{"all are allowed": 100, "more than allowed": 150} {
		t.Run(name, func(t *testing.T) { testFailOf(t, results) })
	}
}

// testFailOf tests a fail in which each fifth of the results is a fail.
func testFailOf(t *testing.T, results int) {
	v := verdict()
	v.PodResults = nil
	for i := range results {
		r := v1alpha1.PodSummary{Pod: fmt.Sprintf("sleep-7d9c5b4f5d-%05d", i), UID: types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i)), Verdict: "pass"}
		if i%5 == 0 {
			r.Verdict, r.Message = "fail", "errors"
		}
		v.PodResults = append(v.PodResults, r)
	}
	e, err := New(v)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseChangePodVerdict(e)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.PodResults) != results/5 || got.Message != v.Message {
		t.Errorf("%d results, message %q", len(got.PodResults), got.Message)
	}
	for _, r := range got.PodResults {
		if r.Verdict != "fail" || r.Message != "errors" {
			t.Errorf("result %+v", r)
		}
	}
}

func TestDataOverTheLimitIsATooLargeError(t *testing.T) {
	v := verdict()
	v.Verdict, v.PodResults = "pass", nil
	for i := range 90 {
		v.PodResults = append(v.PodResults, v1alpha1.PodSummary{
			Pod: "sleep-" + strings.Repeat("x", 40) + string(rune('a'+i%26)) + string(rune('a'+i/26)), Verdict: "fail",
		})
	}
	_, err := New(v)
	var tooLarge *TooLargeError
	if !errors.As(err, &tooLarge) || tooLarge.Size <= MaxData {
		t.Errorf("error %v", err)
	}
}

func TestAJudgeCannotSetTheSourceOfAResult(t *testing.T) {
	v := verdict()
	v.PodResults[0].Source = v1alpha1.SourceServer
	v.PodResults[0].IP = "10.0.0.1"
	for _, got := range []v1alpha1.PodSummary{v.truncated(MaxText).(ChangePodVerdict).PodResults[0], v.Inbox().PodResults[0]} {
		if got.Source != "" || got.IP != "" {
			t.Errorf("result %+v", got)
		}
	}
}

func TestTheInboxEntryHasAllFieldsOfTheVerdict(t *testing.T) {
	v := verdict()
	v.WithoutRules = true
	want := v1alpha1.InboxVerdict{
		ID: v.ID(), NodeID: v.NodeID, Stage: v.Stage, Verdict: v.Verdict, WithoutRules: true,
		Message: v.Message, PodResults: v.PodResults, Time: v.Time,
	}
	if diff := cmp.Diff(want, v.Inbox()); diff != "" {
		t.Errorf("inbox (-want +got):\n%s", diff)
	}
}
