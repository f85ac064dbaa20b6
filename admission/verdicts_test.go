package admission_test

import (
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/breakwater-dev/breakwater/admission/admissiontest"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
)

func TestAVerdictOfAPersonWithoutEffectCausesAWarning(t *testing.T) {
	policy := builder.Manifests[admissionregistrationv1.ValidatingAdmissionPolicy](t, "../config/core/452-verdicts-of-people.yaml")[0]
	binding := builder.Manifests[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, "../config/core/452-verdicts-of-people.yaml")[1]
	if want := []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn}; !slices.Equal(binding.Spec.ValidationActions, want) {
		t.Errorf("the actions are %v: a verdict must not be denied", binding.Spec.ValidationActions)
	}
	const (
		word  = "a verdict in podResults has no effect: write pass or fail"
		pod   = "a verdict in podResults has no effect: its pod is not in spec.podInfos of this ChangePod"
		order = "the verdict in orderResult has no effect: write pass or fail"
	)
	result := func(pod, verdict, source string) object {
		r := object{"pod": pod, "verdict": verdict}
		if source != "" {
			r["source"] = source
		}
		return r
	}
	batch := func(results ...any) object {
		return object{"spec": object{"podInfos": []any{object{"pod": "web-1"}, object{"pod": "web-2"}}}, "status": object{"podResults": results}}
	}
	release := func(verdict string) object {
		return object{"spec": object{}, "status": object{"orderResult": object{"verdict": verdict}}}
	}
	for name, tc := range map[string]struct {
		old, new object
		user     string
		want     []string
	}{
		"pass":                        {batch(), batch(result("web-1", "pass", "")), "alice", nil},
		"unpass":                      {batch(), batch(result("web-1", " Unpass", "")), "alice", nil},
		"fail":                        {batch(), batch(result("web-1", "fail", "")), "alice", nil},
		"misspelled":                  {batch(), batch(result("web-1", "pass", ""), result("web-2", "unpas", "")), "alice", []string{word}},
		"without a verdict":           {batch(), batch(object{"pod": "web-1"}), "alice", []string{word}},
		"unknown pod":                 {batch(), batch(result("web", "pass", "")), "alice", []string{pod}},
		"misspelled before":           {batch(result("web-1", "unpas", "")), batch(result("web-1", "unpas", ""), result("web-2", "pass", "")), "alice", nil},
		"of the server":               {batch(), batch(result("web-1", "inconc", v1alpha1.SourceServer)), "alice", nil},
		"by a function":               {batch(), batch(result("web-1", "inconc", "")), "system:serviceaccount:altershieldoperator-system:verdict", nil},
		"no status":                   {object{"spec": object{}}, object{"spec": object{}}, "alice", nil},
		"order":                       {object{}, release("pass"), "alice", nil},
		"misspelled order":            {object{}, release("unpas"), "alice", []string{order}},
		"misspelled order before":     {release("unpas"), release("unpas"), "alice", nil},
		"removed verdict of an order": {release("pass"), object{"spec": object{}, "status": object{}}, "alice", nil},
	} {
		t.Run(name, func(t *testing.T) {
			vars := map[string]any{"request": request("UPDATE", tc.user), "object": tc.new, "oldObject": tc.old}
			if !admissiontest.Matches(t, policy.Spec.MatchConditions, vars) {
				if tc.want != nil {
					t.Errorf("not checked, want %q", tc.want)
				}
				return
			}
			var got []string
			for _, v := range policy.Spec.Validations {
				if !admissiontest.Matches(t, []admissionregistrationv1.MatchCondition{{Name: v.Message, Expression: v.Expression}}, vars) {
					got = append(got, v.Message)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
