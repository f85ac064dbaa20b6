package diagnosis_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli/diagnosis"
)

func batch(pods []string, post string, results ...v1alpha1.PodSummary) v1alpha1.ChangePod {
	b := v1alpha1.ChangePod{}
	for _, p := range pods {
		b.Spec.PodInfos = append(b.Spec.PodInfos, v1alpha1.PodSummary{Pod: p, App: "web"})
	}
	if post != "" {
		b.Status.Verdicts = []v1alpha1.StageVerdict{{Stage: v1alpha1.StagePost, Verdict: post}}
	}
	b.Status.PodResults = results
	return b
}

func TestAPersonsVerdictIsForThePodsThatNeedOne(t *testing.T) {
	byServer := v1alpha1.PodSummary{Pod: "b", Verdict: "pass", Source: v1alpha1.SourceServer}
	failed := v1alpha1.PodSummary{Pod: "a", Verdict: "fail", Source: v1alpha1.SourceServer}
	for name, tc := range map[string]struct {
		batches []v1alpha1.ChangePod
		verdict string
		names   []string
		want    map[string]string
	}{
		"a pass is for pods that have not passed": {[]v1alpha1.ChangePod{batch([]string{"a", "b"}, "", failed, byServer)}, "pass", nil, map[string]string{"a": "pass", "b": "pass(server)"}},
		"a pass of a passed batch writes nothing": {[]v1alpha1.ChangePod{batch([]string{"a"}, "pass")}, "pass", nil, map[string]string{}},
		"a fail is for all pods":                  {[]v1alpha1.ChangePod{batch([]string{"a"}, "pass"), batch([]string{"b"}, "")}, "fail", nil, map[string]string{"a": "fail", "b": "fail"}},
		"a named pod":                             {[]v1alpha1.ChangePod{batch([]string{"a", "b"}, "pass", byServer)}, "fail", []string{"a"}, map[string]string{"a": "fail", "b": "pass(server)"}},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := diagnosis.VerdictsOfPerson(tc.batches, tc.verdict, "checked", tc.names, "")
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, j := range all {
				for _, r := range j.Results {
					word := r.Verdict
					if r.Source != "" {
						word += "(" + r.Source + ")"
					} else if r.Message != "checked" || r.App != "web" {
						t.Errorf("result is %+v", r)
					}
					got[r.Pod] = word
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := diagnosis.VerdictsOfPerson([]v1alpha1.ChangePod{batch([]string{"a"}, "")}, "pass", "", []string{"c"}, ""); err == nil {
		t.Error("a pod in no batch was judged")
	}
}
