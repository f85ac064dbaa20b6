//go:build controlplane

package change

import (
	"context"
	"fmt"
	"strings"
	"testing"

	runner "github.com/breakwater-dev/breakwater/test/e2e/kubectl"
)

func TestMistakesWithoutEffectCauseAWarning(t *testing.T) {
	kubectl(t, "", "apply", "-f", "../../config/permission/306-namespace-label.yaml")
	t.Cleanup(func() {
		if _, err := (runner.Kubectl{}).Output(context.Background(), "", "delete", "-f", "../../config/permission/306-namespace-label.yaml"); err != nil {
			t.Error(err)
		}
	})
	const system = "altershieldoperator-system"
	namespace := func(label, value string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: warned, labels: {%s: %q}}\n", label, value)
	}
	check := func(namespace, name string) string {
		return fmt.Sprintf("apiVersion: judge.breakwater.dev/v1alpha1\nkind: MetricCheck\nmetadata: {name: %s, namespace: %s}\nspec: {}\n", name, namespace)
	}
	setting := func(kind, content string) string {
		return fmt.Sprintf("apiVersion: app.ops.cloud.alipay.com/v1alpha1\nkind: OpsConfigInfo\nmetadata: {name: warned, namespace: %s}\nspec: {type: %s, content: %q, enable: true}\n", system, kind, content)
	}
	const judging, permission = "admission-webhook-altershield", "stke.io/permission"
	for name, tc := range map[string]struct{ manifest, want string }{
		"an opted-in namespace":              {namespace(judging, "enabled"), ""},
		"a namespace that is opted out":      {namespace(judging, "disabled"), ""},
		"a misspelled opt-in":                {namespace(judging, "enable"), `label admission-webhook-altershield: "enable" does not enable the namespace: write enabled`},
		"a namespace with permissions":       {namespace(permission, "enabled"), ""},
		"a misspelled opt-in to permissions": {namespace(permission, "enabledd"), `label stke.io/permission: "enabledd" does not enable the namespace: write enabled`},
		"the MetricCheck of the cluster":     {check(system, "default"), ""},
		"a MetricCheck of a namespace":       {check("default", "web"), ""},
		"a misspelled MetricCheck":           {check(system, "defaults"), "this MetricCheck has no effect: in namespace altershieldoperator-system, only the name default has one; write others into the namespace of their workloads"},
		"a judge of Breakwater":              {setting("judges", "metrics"), ""},
		"a misspelled judge":                 {setting("judges", "metricks"), "judges of your own: metricks; each needs its key in Secret external-judge-keys, or batches that wait for it stay unjudged"},
		"a second setting":                   {setting("isBlockingUp", ""), "this OpsConfigInfo has no effect: blocking is older and has the same type isBlockingUp: change blocking instead"},
	} {
		t.Run(name, func(t *testing.T) {
			// The API server may not evaluate a new policy yet.
			await(t, fmt.Sprintf("the warning is %q", tc.want), func(ctx context.Context) error {
				r, err := runner.Kubectl{}.RunWithInput(ctx, tc.manifest, "create", "--dry-run=server", "-f", "-")
				if err != nil {
					return err
				}
				if got := strings.Join(r.Warnings(), "\n"); r.Code != 0 || (got == "") != (tc.want == "") || !strings.HasSuffix(got, tc.want) {
					return fmt.Errorf("got %s", r)
				}
				return nil
			})
		})
	}
	t.Run("an update of another label", func(t *testing.T) {
		kubectl(t, namespace(judging, "enable"), "apply", "-f", "-")
		t.Cleanup(func() {
			if _, err := (runner.Kubectl{}).Output(context.Background(), "", "delete", "namespace", "warned", "--wait=false"); err != nil {
				t.Error(err)
			}
		})
		for label, want := range map[string]int{"team=a": 0, judging + "=on": 1, judging + "-": 0} {
			r, err := runner.Kubectl{}.Run(t.Context(), "label", "namespace", "warned", "--overwrite", "--dry-run=server", label)
			if err != nil || r.Code != 0 || len(r.Warnings()) != want {
				t.Errorf("want %d warnings, got %s, %v", want, r, err)
			}
		}
	})
}
