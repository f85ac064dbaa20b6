package events

import (
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func judgeVerdict(edit ...func(*JudgeVerdict)) JudgeVerdict {
	d := JudgeVerdict{
		Namespace: "default", Name: "sleep--x--" + version + "--x--1", UID: "0a1b2c3d-0000-4000-8000-000000000002",
		Version: version, Attempt: 3, Judge: "canary", Stage: v1alpha1.StagePost, Verdict: "fail",
		Reason: "TooSlow", Message: "m", Time: metav1.NewMicroTime(metav1.Unix(1_700_000_000, 0).Time),
	}
	for _, f := range edit {
		f(&d)
	}
	return d
}

func TestAJudgeNeedsNoNodeIDAndAnswersPOSTOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*JudgeVerdict)
		want string // a part of the error, empty for none
	}{
		"as it is":              {func(*JudgeVerdict) {}, ""},
		"no verdict is a value": {func(d *JudgeVerdict) { d.Verdict = "" }, ""},
		"stage PRE":             {func(d *JudgeVerdict) { d.Stage = v1alpha1.StagePre }, "stage"},
		"the server":            {func(d *JudgeVerdict) { d.Judge = "server" }, "callback"},
		"no judge":              {func(d *JudgeVerdict) { d.Judge = "" }, "judge"},
		"no UID":                {func(d *JudgeVerdict) { d.UID = "" }, "uid"},
		"no time":               {func(d *JudgeVerdict) { d.Time = metav1.MicroTime{} }, "time"},
		"a long reason":         {func(d *JudgeVerdict) { d.Reason = strings.Repeat("r", 129) }, "reason"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(judgeVerdict(tc.edit))
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// The extension is not signed, so the judge of a verdict is the one in its data.
func TestEachJudgeHasItsOwnWakeUpsAndVerdicts(t *testing.T) {
	ready := samples()[1].(ChangePodReady)
	forServer, err := New(ready)
	if err != nil {
		t.Fatal(err)
	}
	ready.Judge = "canary"
	forJudge, err := New(ready)
	if err != nil {
		t.Fatal(err)
	}
	ofJudge, err := New(judgeVerdict())
	if err != nil {
		t.Fatal(err)
	}
	ofServer, err := New(verdict())
	if err != nil {
		t.Fatal(err)
	}
	ofServer.SetExtension(JudgeExtension, "canary")
	for name, tc := range map[string]struct {
		event             cloudevents.Event
		extension, answer string
	}{
		"a wake-up for the server":    {forServer, "server", ""},
		"a wake-up for a judge":       {forJudge, "canary", ""},
		"the verdict of a judge":      {ofJudge, "canary", "canary"},
		"a verdict with an extension": {ofServer, "canary", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.event.Extensions()[JudgeExtension]; got != tc.extension || JudgeOf(tc.event) != tc.answer {
				t.Errorf("extension %v, judge %q", got, JudgeOf(tc.event))
			}
		})
	}
	if forServer.ID() == forJudge.ID() {
		t.Errorf("both wake-ups have id %s", forServer.ID())
	}
}
