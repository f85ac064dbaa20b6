package events

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func TestTheSameFactHasTheSameIDAndAnotherFactAnother(t *testing.T) {
	again := release(VerbSuspended)
	again.EntryTimeUnix++
	later := release(VerbStarted)
	later.EntryTimeUnix++
	more := release(VerbProgressed)
	more.Counts.Passed++
	next := release(VerbProgressed)
	next.SlotUnix += 30
	closing := examples()[3].(OrderReady)
	closing.Step = v1alpha1.OrderStepClose
	post := examples()[1].(ChangePodReady)
	post.Stage = v1alpha1.StagePost
	agreeing := v1alpha1.PodSummary{Pod: "another", Verdict: "unpass"}
	change := func(f func(*ChangePodVerdict)) Data {
		v := verdict()
		f(&v)
		return v
	}
	refused := func(f func(*DeletionDenied)) Data { d := refusedDeletion(); f(&d); return d }
	opened := func(f func(*DeletionFlow)) Data { d := breaker(true); f(&d); return d }
	for name, tc := range map[string]struct {
		a, b Data
		same bool
	}{
		"refused again in the slot":      {refusedDeletion(), refused(func(d *DeletionDenied) { d.Object, d.User = "another", "joe" }), true},
		"refused in the next slot":       {refusedDeletion(), refused(func(d *DeletionDenied) { d.SlotUnix += 60 }), false},
		"refused by another guard":       {refusedDeletion(), refused(func(d *DeletionDenied) { d.Guard.UID = "other" }), false},
		"opened and closed":              {breaker(true), breaker(false), false},
		"opened, told in other words":    {breaker(true), opened(func(d *DeletionFlow) { d.Deleted++; d.Message = "" }), true},
		"opened again":                   {breaker(true), opened(func(d *DeletionFlow) { d.SinceUnix++ }), false},
		"another stage":                  {examples()[1], post, false},
		"suspended again":                {release(VerbSuspended), again, false},
		"started, told in a later state": {release(VerbStarted), later, true},
		"other counts in one slot":       {release(VerbProgressed), more, true},
		"the next slot":                  {release(VerbProgressed), next, false},
		"another step of the order":      {examples()[3], closing, false},
		"another verb":                   {release(VerbSuspended), release(VerbSucceeded), false},
		"a verdict told again":           {verdict(), change(func(v *ChangePodVerdict) { v.Time = metav1.MicroTime{} }), true},
		"a verdict with another message": {verdict(), change(func(v *ChangePodVerdict) { v.Message = "other" }), true},
		"another word":                   {verdict(), change(func(v *ChangePodVerdict) { v.Verdict = "unpass" }), false},
		"another node":                   {verdict(), change(func(v *ChangePodVerdict) { v.NodeID = "node-18" }), false},
		"no results":                     {verdict(), change(func(v *ChangePodVerdict) { v.PodResults = nil }), false},
		"one that agrees less":           {change(func(v *ChangePodVerdict) { v.PodResults = append(v.PodResults, agreeing) }), verdict(), true},
		"none that agrees":               {verdict(), change(func(v *ChangePodVerdict) { v.PodResults = v.PodResults[1:] }), false},
		"only some that agree":           {change(func(v *ChangePodVerdict) { v.PodResults = nil }), change(func(v *ChangePodVerdict) { v.PodResults = v.PodResults[:1] }), true},
		"a word that is not plain":       {change(func(v *ChangePodVerdict) { v.Verdict = "a b" }), change(func(v *ChangePodVerdict) { v.Verdict = "a/b" }), false},
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
