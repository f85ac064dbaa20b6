package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files")

const version = "5d41402abc4b2a76b9719d911017c592"

func deployment() Workload {
	return Workload{APIVersion: "apps/v1", Kind: "Deployment", Name: "sleep"}
}

// examples returns one of each type.
func examples() []Data {
	all := []Data{
		PodFinished{
			Namespace: "default",
			Pod:       "sleep-7d9c5b4f5d-x2k9q",
			PodUID:    "0a1b2c3d-0000-4000-8000-000000000001",
			Workload:  deployment(),
			Version:   version,
			Attempt:   3,
		},
		ChangePodReady{
			Namespace:      "default",
			Name:           "sleep--x--" + version + "--x--1",
			UID:            "0a1b2c3d-0000-4000-8000-000000000002",
			ChangeWorkload: "sleep--x--" + version,
			Version:        version,
			Attempt:        3,
			Stage:          v1alpha1.StagePre,
		},
		verdict(),
	}
	for _, verb := range []Verb{
		VerbStarted, VerbProgressed, VerbSucceeded, VerbSuspended, VerbFailed, VerbRolledBack, VerbBypassed,
	} {
		all = append(all, release(verb))
	}
	return append(all, ReleaseDenied{
		RequestUID: "0a1b2c3d-0000-4000-8000-000000000004",
		Namespace:  "default",
		Workload:   deployment(),
		User:       "jane",
		Reason:     v1alpha1.ReasonReleaseDenied,
		Message:    "deployment sleep is suspended",
	})
}

func verdict() ChangePodVerdict {
	return ChangePodVerdict{
		Namespace:      "default",
		Name:           "sleep--x--" + version + "--x--1",
		UID:            "0a1b2c3d-0000-4000-8000-000000000002",
		ChangeWorkload: "sleep--x--" + version,
		Version:        version,
		BizExecOrderID: "demo/default/Deployment/sleep/" + version + "/3",
		NodeID:         "node-17",
		Stage:          v1alpha1.StagePost,
		Verdict:        "fail",
		Message:        "error rate above 1 %",
		PodResults: []v1alpha1.PodSummary{
			{Pod: "sleep-7d9c5b4f5d-x2k9q", Verdict: "fail", Message: "find error"},
			{Pod: "sleep-7d9c5b4f5d-abcde", Verdict: "pass"},
		},
		Time: metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)),
	}
}

func release(verb Verb) ChangeWorkload {
	d := ChangeWorkload{
		Verb:          verb,
		Namespace:     "default",
		Name:          "sleep--x--" + version,
		UID:           "0a1b2c3d-0000-4000-8000-000000000003",
		Workload:      deployment(),
		Version:       version,
		Attempt:       3,
		Status:        v1alpha1.WorkloadSuspend,
		EntryTimeUnix: 1_767_323_045,
		Reason:        v1alpha1.ReasonCheckFailed,
		Message:       "1 of 10 pods failed",
		Counts:        v1alpha1.PodCounts{Pods: 10, Preparing: 4, Checking: 2, Passed: 3, Failed: 1},
	}
	if verb == VerbBypassed {
		d.User = "jane"
	}
	return d
}

// short returns a type without what all types have in common.
func short(eventType string) string {
	return strings.TrimSuffix(strings.TrimPrefix(eventType, "dev.breakwater."), ".v1")
}

func parse(e cloudevents.Event) (Data, error) {
	switch e.Type() {
	case TypePodFinished:
		return ParsePodFinished(e)
	case TypeChangePodReady:
		return ParseChangePodReady(e)
	case TypeChangePodVerdict:
		return ParseChangePodVerdict(e)
	case TypeReleaseDenied:
		return ParseReleaseDenied(e)
	default:
		return ParseChangeWorkload(e)
	}
}

func TestEveryTypeHasAnExample(t *testing.T) {
	var have []string
	for _, d := range examples() {
		have = append(have, d.Type())
	}
	if diff := cmp.Diff(Types(), have); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
}

func TestWhatIsOnTheWireStaysAsItIs(t *testing.T) {
	for _, d := range examples() {
		t.Run(short(d.Type()), func(t *testing.T) {
			e, err := New(d)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := json.Indent(&got, raw, "", "  "); err != nil {
				t.Fatal(err)
			}
			got.WriteByte('\n')
			file := filepath.Join("testdata", short(d.Type())+".json")
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("%s (-want +got), or run with -update:\n%s", file, diff)
			}
		})
	}
}

func TestDataComesBackAsItWasSent(t *testing.T) {
	for _, d := range examples() {
		t.Run(short(d.Type()), func(t *testing.T) {
			e, err := New(d)
			if err != nil {
				t.Fatal(err)
			}
			got, err := parse(e)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(d, got); diff != "" {
				t.Errorf("data (-sent +parsed):\n%s", diff)
			}
			if e.ID() != got.ID() || e.Source() != got.Source() || e.Subject() != got.Subject() {
				t.Errorf("attributes do not follow from the data: %s", e)
			}
		})
	}
}

func TestParseRefusesAnotherType(t *testing.T) {
	e, err := New(examples()[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, parse := range map[string]func(cloudevents.Event) error{
		"ChangePodReady":   func(e cloudevents.Event) error { _, err := ParseChangePodReady(e); return err },
		"ChangePodVerdict": func(e cloudevents.Event) error { _, err := ParseChangePodVerdict(e); return err },
		"ExternalVerdict":  func(e cloudevents.Event) error { _, err := ParseExternalVerdict(e); return err },
		"ChangeWorkload":   func(e cloudevents.Event) error { _, err := ParseChangeWorkload(e); return err },
		"ReleaseDenied":    func(e cloudevents.Event) error { _, err := ParseReleaseDenied(e); return err },
	} {
		if parse(e) == nil {
			t.Errorf("%s parses a %s", name, e.Type())
		}
	}
}

func TestTheSameFactHasTheSameIDAndAnotherFactAnother(t *testing.T) {
	again := release(VerbSuspended)
	again.EntryTimeUnix++
	later := release(VerbStarted)
	later.EntryTimeUnix++
	more := release(VerbProgressed)
	more.Counts.Passed++
	post := examples()[1].(ChangePodReady)
	post.Stage = v1alpha1.StagePost
	change := func(f func(*ChangePodVerdict)) Data {
		v := verdict()
		f(&v)
		return v
	}
	for name, tc := range map[string]struct {
		a, b Data
		same bool
	}{
		"another stage":                     {examples()[1], post, false},
		"suspended again":                   {release(VerbSuspended), again, false},
		"started, told in a later state":    {release(VerbStarted), later, true},
		"other counts":                      {release(VerbProgressed), more, false},
		"another verb":                      {release(VerbSuspended), release(VerbSucceeded), false},
		"a verdict told again":              {verdict(), change(func(v *ChangePodVerdict) { v.Time = metav1.MicroTime{} }), true},
		"a verdict with another message":    {verdict(), change(func(v *ChangePodVerdict) { v.Message = "other" }), true},
		"another word":                      {verdict(), change(func(v *ChangePodVerdict) { v.Verdict = "unpass" }), false},
		"another node":                      {verdict(), change(func(v *ChangePodVerdict) { v.NodeID = "node-18" }), false},
		"no results":                        {verdict(), change(func(v *ChangePodVerdict) { v.PodResults = nil }), false},
		"without results that say the same": {verdict(), change(func(v *ChangePodVerdict) { v.PodResults = v.PodResults[1:] }), true},
		"a word that is not plain":          {change(func(v *ChangePodVerdict) { v.Verdict = "a b" }), change(func(v *ChangePodVerdict) { v.Verdict = "a/b" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			if (tc.a.ID() == tc.b.ID()) != tc.same {
				t.Errorf("ids %q and %q, same should be %v", tc.a.ID(), tc.b.ID(), tc.same)
			}
		})
	}
}

func TestAWordThatIsNotPlainDoesNotReachTheID(t *testing.T) {
	for _, word := range []string{"", "a b", "a/b", "ä", "x\r\nce-type: y"} {
		if got := segment(word); !strings.HasPrefix(got, "~") || !plain(got[1:]) {
			t.Errorf("segment(%q) = %q", word, got)
		}
	}
}

func TestAPodOfTheCoreGroupHasItsOwnPath(t *testing.T) {
	w := Workload{APIVersion: "v1", Kind: "Pod", Name: "a"}
	if got, want := w.source("ns"), "/api/v1/namespaces/ns/pods/a"; got != want {
		t.Errorf("source %q, want %q", got, want)
	}
}

func TestTextsAreCutUntilTheDataFits(t *testing.T) {
	many := func(n int, word string) []v1alpha1.PodSummary {
		var out []v1alpha1.PodSummary
		for i := range n {
			out = append(out, v1alpha1.PodSummary{
				Pod: "sleep-7d9c5b4f5d-" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)), Verdict: word,
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
		"a long message":                      {func(v *ChangePodVerdict) { v.Message = strings.Repeat("ä", 10_000) }, 2, false},
		"control characters":                  {func(v *ChangePodVerdict) { v.Message = strings.Repeat("\x01", 10_000) }, 2, false},
		"not UTF-8":                           {func(v *ChangePodVerdict) { v.Message = strings.Repeat("\xff", 10_000) }, 2, false},
		"long results":                        {func(v *ChangePodVerdict) { v.PodResults = many(40, "pass") }, 40, false},
		"too many that say the same":          {func(v *ChangePodVerdict) { v.PodResults = append(many(300, "fail"), v.PodResults[1]) }, 1, false},
		"too many that say something else":    {func(v *ChangePodVerdict) { v.PodResults = many(90, "pass") }, 0, true},
		"more than the inbox has a place for": {func(v *ChangePodVerdict) { v.PodResults = many(101, "pass") }, 0, true},
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

func TestTooLargeDataIsAnErrorOfItsOwn(t *testing.T) {
	v := verdict()
	v.PodResults = nil
	for i := range 90 {
		v.PodResults = append(v.PodResults, v1alpha1.PodSummary{
			Pod: "sleep-" + strings.Repeat("x", 40) + string(rune('a'+i%26)) + string(rune('a'+i/26)), Verdict: "pass",
		})
	}
	_, err := New(v)
	var tooLarge *TooLargeError
	if !errors.As(err, &tooLarge) || tooLarge.Size <= MaxData {
		t.Errorf("error %v", err)
	}
}

func TestAJudgeCannotSpeakAsAPerson(t *testing.T) {
	v := verdict()
	v.PodResults[0].Source = v1alpha1.SourceServer
	v.PodResults[0].IP = "10.0.0.1"
	for _, got := range []v1alpha1.PodSummary{v.bounded(MaxText).(ChangePodVerdict).PodResults[0], v.Inbox().PodResults[0]} {
		if got.Source != "" || got.IP != "" {
			t.Errorf("result %+v", got)
		}
	}
}

func TestTheInboxKeepsWhatWasSaid(t *testing.T) {
	v := verdict()
	v.Unjudged = true
	want := v1alpha1.InboxVerdict{
		ID: v.ID(), NodeID: v.NodeID, Stage: v.Stage, Verdict: v.Verdict, Unjudged: true,
		Message: v.Message, PodResults: v.PodResults, Time: v.Time,
	}
	if diff := cmp.Diff(want, v.Inbox()); diff != "" {
		t.Errorf("inbox (-want +got):\n%s", diff)
	}
}

func TestAnErrorNamesTheField(t *testing.T) {
	pod := func(f func(*PodFinished)) Data { d := examples()[0].(PodFinished); f(&d); return d }
	ready := func(f func(*ChangePodReady)) Data { d := examples()[1].(ChangePodReady); f(&d); return d }
	judged := func(f func(*ChangePodVerdict)) Data { d := verdict(); f(&d); return d }
	work := func(f func(*ChangeWorkload)) Data { d := release(VerbSuspended); f(&d); return d }
	denied := func(f func(*ReleaseDenied)) Data { d := examples()[10].(ReleaseDenied); f(&d); return d }
	for want, d := range map[string]Data{
		"namespace:":            pod(func(d *PodFinished) { d.Namespace = "a/b" }),
		"pod:":                  pod(func(d *PodFinished) { d.Pod = "" }),
		"podUid:":               pod(func(d *PodFinished) { d.PodUID = "a b" }),
		"workload.apiVersion:":  pod(func(d *PodFinished) { d.Workload.APIVersion = "a/b/c" }),
		"workload.kind:":        pod(func(d *PodFinished) { d.Workload.Kind = "" }),
		"workload.name:":        pod(func(d *PodFinished) { d.Workload.Name = "../x" }),
		"version:":              pod(func(d *PodFinished) { d.Version = strings.Repeat("a", 64) }),
		"attempt:":              pod(func(d *PodFinished) { d.Attempt = -1 }),
		"name:":                 ready(func(d *ChangePodReady) { d.Name = "A" }),
		"uid:":                  ready(func(d *ChangePodReady) { d.UID = types.UID(strings.Repeat("a", 129)) }),
		"changeWorkload:":       ready(func(d *ChangePodReady) { d.ChangeWorkload = "" }),
		"stage:":                ready(func(d *ChangePodReady) { d.Stage = "pre" }),
		"bizExecOrderId:":       judged(func(d *ChangePodVerdict) { d.BizExecOrderID = strings.Repeat("a", 129) }),
		"nodeId:":               judged(func(d *ChangePodVerdict) { d.NodeID = "" }),
		"verdict:":              judged(func(d *ChangePodVerdict) { d.Verdict = strings.Repeat("a", 64) }),
		"podResults[1].pod:":    judged(func(d *ChangePodVerdict) { d.PodResults[1].Pod = d.PodResults[0].Pod }),
		"podResults[1].verdict": judged(func(d *ChangePodVerdict) { d.PodResults[1].Verdict = strings.Repeat("a", 64) }),
		"time:":                 judged(func(d *ChangePodVerdict) { d.Time = metav1.MicroTime{} }),
		"verb:":                 work(func(d *ChangeWorkload) { d.Verb = "won" }),
		"entryTimeUnix:":        work(func(d *ChangeWorkload) { d.EntryTimeUnix = 0 }),
		"reason:":               work(func(d *ChangeWorkload) { d.Reason = strings.Repeat("a", 129) }),
		"requestUid:":           denied(func(d *ReleaseDenied) { d.RequestUID = "" }),
		"user:":                 denied(func(d *ReleaseDenied) { d.User = "" }),
	} {
		t.Run(want, func(t *testing.T) {
			_, err := New(d)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one that names %s", err, want)
			}
		})
	}
}
