package workloadkinds

import (
	"regexp"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/breakwater-dev/breakwater/admission/admissiontest"
	"github.com/breakwater-dev/breakwater/admission/change/suspend"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// FuzzKinds parses lists of workload kinds. The API server accepts the webhooks of each
// kind that is accepted, and an error names the entry or the key.
func FuzzKinds(f *testing.F) {
	f.Add("- {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, revisions: ControllerRevision, pause: spec.updateStrategy.paused}")
	f.Add("- {apiVersion: argoproj.io/v1alpha1, kind: Rollout, revisions: ReplicaSet}")
	f.Add("- {apiVersion: a.b/v1, kind: X, resource: xs, revisions: ReplicaSet, pause: spec.for.in-out.namespace}")
	f.Add("- {apiVersion: \"a b'/v1\", kind: X, revisions: ReplicaSet}")
	f.Add("- {apiVersion: a.b/V_1, kind: \u212Aind, revisions: ReplicaSet}")
	f.Add("- {apiVersion: apps/v2, kind: deployMENT, revisions: ReplicaSet}")
	f.Add("- {apiVersion: " + strings.Repeat("a", 300) + "/v1, kind: X, revisions: ReplicaSet}")
	f.Add("- &a {apiVersion: a.b/v1, kind: X, revisions: ReplicaSet}\n- *a")
	f.Add(strings.Repeat("- {}\n", 17))
	f.Add("{}")
	kindName := regexp.MustCompile(`^[A-Z][A-Za-z0-9-]*$`)
	f.Fuzz(func(t *testing.T, data string) {
		kinds, err := workload.Kinds(map[string]string{workload.KindsKey: data})
		if err != nil {
			if !strings.HasPrefix(err.Error(), workload.KindsKey) || len(kinds) != len(workload.BuiltIn()) {
				t.Errorf("%d kinds, %v", len(kinds), err)
			}
			return
		}
		seen := map[string]bool{}
		for _, k := range kinds {
			for _, name := range []string{suspend.MutatingWebhook(k), suspend.ValidatingWebhook(k)} {
				if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 || strings.Count(name, ".") < 2 || seen[name] {
					t.Errorf("webhook %q: %v, seen %t", name, problems, seen[name])
				}
				seen[name] = true
			}
			if !kindName.MatchString(k.Kind) || len(validation.IsDNS1035Label(k.Version)) > 0 || len(validation.IsDNS1035Label(k.Resource)) > 0 {
				t.Errorf("%q %q %q", k.Kind, k.Version, k.Resource)
			}
			object := map[string]any{"metadata": map[string]any{}, "spec": map[string]any{"template": map[string]any{}}}
			condition := admissionregistrationv1.MatchCondition{Name: DecidedCondition, Expression: decidedExpression(k)}
			if admissiontest.Matches(t, []admissionregistrationv1.MatchCondition{condition}, map[string]any{"object": object, "oldObject": object, "request": map[string]any{"operation": "UPDATE"}}) {
				t.Errorf("an update without a change matches %s", condition.Expression)
			}
		}
	})
}
