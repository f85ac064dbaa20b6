package events

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func TestTheIDIdentifiesTheFact(t *testing.T) {
	again := changeWorkload(VerbSuspended)
	again.EntryTimeUnix++
	later := changeWorkload(VerbStarted)
	later.EntryTimeUnix++
	more := changeWorkload(VerbProgressed)
	more.Counts.Passed++
	next := changeWorkload(VerbProgressed)
	next.ProgressUnix += 30
	closing := samples()[3].(OrderReady)
	closing.Step = v1alpha1.OrderStepClose
	post := samples()[1].(ChangePodReady)
	post.Stage = v1alpha1.StagePost
	agreeing := v1alpha1.PodSummary{Pod: "another", Verdict: "unpass"}
	change := func(f func(*ChangePodVerdict)) Data {
		v := verdict()
		f(&v)
		return v
	}
	denied := func(f func(*DeletionDenied)) Data { d := deletionDenied(); f(&d); return d }
	opened := func(f func(*DeletionFlow)) Data { d := deletionFlow(true); f(&d); return d }
	for name, tc := range map[string]struct {
		a, b Data
		same bool
	}{
		"denied again in the period":     {deletionDenied(), denied(func(d *DeletionDenied) { d.Object, d.User = "another", "joe" }), true},
		"denied in the next period":      {deletionDenied(), denied(func(d *DeletionDenied) { d.PeriodUnix += 60 }), false},
		"denied by another guard":        {deletionDenied(), denied(func(d *DeletionDenied) { d.DeniedBy.UID = "other" }), false},
		"opened and closed":              {deletionFlow(true), deletionFlow(false), false},
		"opened, with another message":   {deletionFlow(true), opened(func(d *DeletionFlow) { d.Deleted++; d.Message = "" }), true},
		"opened again":                   {deletionFlow(true), opened(func(d *DeletionFlow) { d.SinceUnix++ }), false},
		"another stage":                  {samples()[1], post, false},
		"suspended again":                {changeWorkload(VerbSuspended), again, false},
		"started, sent in a later state": {changeWorkload(VerbStarted), later, true},
		"other counts at one time":       {changeWorkload(VerbProgressed), more, true},
		"the next progress":              {changeWorkload(VerbProgressed), next, false},
		"another step of the order":      {samples()[3], closing, false},
		"another verb":                   {changeWorkload(VerbSuspended), changeWorkload(VerbSucceeded), false},
		"verdict sent again":             {verdict(), change(func(v *ChangePodVerdict) { v.Time = metav1.MicroTime{} }), true},
		"verdict with another message":   {verdict(), change(func(v *ChangePodVerdict) { v.Message = "other" }), true},
		"another verdict":                {verdict(), change(func(v *ChangePodVerdict) { v.Verdict = "unpass" }), false},
		"another node":                   {verdict(), change(func(v *ChangePodVerdict) { v.NodeID = "node-18" }), false},
		"no results":                     {verdict(), change(func(v *ChangePodVerdict) { v.PodResults = nil }), false},
		"one agreeing result less":       {change(func(v *ChangePodVerdict) { v.PodResults = append(v.PodResults, agreeing) }), verdict(), true},
		"no agreeing result":             {verdict(), change(func(v *ChangePodVerdict) { v.PodResults = v.PodResults[1:] }), false},
		"only agreeing results":          {change(func(v *ChangePodVerdict) { v.PodResults = nil }), change(func(v *ChangePodVerdict) { v.PodResults = v.PodResults[:1] }), true},
		"verdicts that are not id-safe":  {change(func(v *ChangePodVerdict) { v.Verdict = "a b" }), change(func(v *ChangePodVerdict) { v.Verdict = "a/b" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			if (tc.a.ID() == tc.b.ID()) != tc.same {
				t.Errorf("ids %q and %q, same should be %v", tc.a.ID(), tc.b.ID(), tc.same)
			}
		})
	}
}

func TestUnsafeValuesAreHashedInTheID(t *testing.T) {
	for _, value := range []string{"", "a b", "a/b", "ä", "x\r\nce-type: y"} {
		if got := segment(value); !strings.HasPrefix(got, "~") || !idSafe(got[1:]) {
			t.Errorf("segment(%q) = %q", value, got)
		}
	}
}

func TestTheSourceOfACoreKindIsItsAPIPath(t *testing.T) {
	w := Workload{APIVersion: "v1", Kind: "Pod", Name: "a"}
	if got, want := w.source("ns"), "/api/v1/namespaces/ns/pods/a"; got != want {
		t.Errorf("source %q, want %q", got, want)
	}
}
