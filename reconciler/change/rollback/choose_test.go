package rollback

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
)

func savedTemplates(attempts map[string]int64) []savedtemplate.Saved {
	var saved []savedtemplate.Saved
	for version, attempt := range attempts {
		saved = append(saved, savedtemplate.Saved{Release: v1alpha1.Release{Version: version, Attempt: attempt}, Template: json.RawMessage(`"saved ` + version + `"`)})
	}
	slices.SortFunc(saved, func(a, b savedtemplate.Saved) int { return cmp.Compare(b.Release.Attempt, a.Release.Attempt) })
	return saved
}

func runs(version string, number int64, pods, ready int) VersionState {
	return VersionState{Version: version, Number: number, Pods: pods, Ready: ready, Template: json.RawMessage(`"runs ` + version + `"`)}
}

func TestTargetOfARollback(t *testing.T) {
	heal := Decision{Kind: v1alpha1.RollbackSelfHealing}
	verdict := Decision{Kind: v1alpha1.RollbackVerdict}
	ask := func(version string) Decision { return Decision{Kind: v1alpha1.RollbackRequested, Version: version} }
	for name, tc := range map[string]struct {
		decision Decision
		saved    map[string]int64
		versions []VersionState
		failed   string
		ready    bool
		// want is the template; why are words of the reason when there is none.
		want, why string
	}{
		"self-healing chooses a running version whose pods are Ready": {
			decision: heal, versions: []VersionState{runs("bad", 2, 1, 0), runs("a", 1, 3, 3)}, want: "runs a"},
		"and prefers its saved template": {
			decision: heal, saved: map[string]int64{"a": 1}, versions: []VersionState{runs("a", 1, 3, 3)}, want: "saved a"},
		"not when one of its pods is not Ready": {
			decision: heal, saved: map[string]int64{"a": 1}, versions: []VersionState{runs("a", 1, 3, 2)}, why: "each other version with pods failed its check or has pods that are not Ready"},
		"not a version that failed its check": {
			decision: heal, versions: []VersionState{runs("a", 1, 3, 3)}, failed: "a", why: "each other version with pods failed its check or has pods that are not Ready"},
		"a version that succeeded before one that only runs": {
			decision: heal, saved: map[string]int64{"a": 1}, versions: []VersionState{runs("b", 2, 1, 1), runs("a", 1, 3, 3)}, want: "saved a"},
		"the newest running version": {
			decision: heal, versions: []VersionState{runs("a", 1, 3, 3), runs("b", 2, 1, 1)}, want: "runs b"},
		"a version without pods proves nothing": {
			decision: heal, versions: []VersionState{runs("b", 2, 0, 0), runs("a", 1, 3, 3)}, want: "runs a"},
		"without other running versions, the newest that succeeded": {
			decision: heal, saved: map[string]int64{"a": 1, "b": 3}, versions: []VersionState{runs("bad", 4, 1, 0)}, want: "saved b"},
		"but not when a pod of the release is Ready": {
			decision: heal, saved: map[string]int64{"b": 3}, versions: []VersionState{runs("bad", 4, 2, 1)}, ready: true, why: "some pods of this one are Ready"},
		"and none where no version succeeded": {
			decision: heal, versions: []VersionState{runs("bad", 4, 1, 0)}, why: "none that succeeded is saved"},

		"a failed check goes to the newest Success": {
			decision: verdict, saved: map[string]int64{"a": 1, "b": 3}, want: "saved b"},
		"not to itself": {
			decision: verdict, saved: map[string]int64{"a": 1, "bad": 3}, want: "saved a"},
		"not to a version that failed later": {
			decision: verdict, saved: map[string]int64{"a": 1, "b": 3}, failed: "b", want: "saved a"},
		"not to a version that only runs": {
			decision: verdict, versions: []VersionState{runs("a", 1, 3, 3)}, why: "no other version that succeeded is saved"},

		"a request gets the newest":   {decision: ask(""), saved: map[string]int64{"a": 1, "b": 3}, want: "saved b"},
		"or the requested version":    {decision: ask("a"), saved: map[string]int64{"a": 1, "b": 3}, want: "saved a"},
		"but only one that succeeded": {decision: ask("c"), saved: map[string]int64{"a": 1}, why: "version c is not saved: it has not succeeded, or its template was deleted since (history-limit, a failed check)"},
		"and not the current one":     {decision: ask("bad"), saved: map[string]int64{"bad": 3}, why: "version bad is already the current one"},
	} {
		t.Run(name, func(t *testing.T) {
			target, ok, why := Choose(tc.decision, Candidates{Current: "bad", Versions: tc.versions, Saved: savedTemplates(tc.saved),
				Failed: func(v string) bool { return v == tc.failed }, CurrentHasReadyPod: tc.ready})
			if ok != (tc.want != "") || !strings.Contains(why, tc.why) {
				t.Fatalf("got %v, %q", ok, why)
			}
			if ok && string(target.Template) != `"`+tc.want+`"` {
				t.Errorf("got %s (%s)", target.Template, target.Proof)
			}
			if ok && (target.Version == "" || target.Proof == "") {
				t.Errorf("got %+v", target)
			}
		})
	}
}
