package protection

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/breakwater-dev/breakwater/admission/admissiontest"
	"github.com/breakwater-dev/breakwater/admission/protection/budget"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// withoutRoleLabels returns the conditions of vpodbudget.kb.io with the overlay of docs/protection/budgets.md.
func withoutRoleLabels(t *testing.T) []admissionregistrationv1.MatchCondition {
	t.Helper()
	page, err := os.ReadFile("../../docs/protection/budgets.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "### Exempt role labels\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var block strings.Builder
	for line := range strings.Lines(section) {
		if text, ok := strings.CutPrefix(line, "    "); ok {
			block.WriteString(text)
		}
	}
	var overlay struct{ Patches []struct{ Patch string } }
	if err := yaml.Unmarshal([]byte(block.String()), &overlay); err != nil || len(overlay.Patches) != 1 {
		t.Fatalf("the overlay has %d patches, %v:\n%s", len(overlay.Patches), err, block.String())
	}
	operations, err := yaml.YAMLToJSON([]byte(overlay.Patches[0].Patch))
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(builder.Manifests[admissionregistrationv1.ValidatingWebhookConfiguration](t, manifests+"430-webhook-validating.yaml")[0])
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = patch.Apply(raw); err != nil {
		t.Fatal(err)
	}
	var patched admissionregistrationv1.ValidatingWebhookConfiguration
	if err := json.Unmarshal(raw, &patched); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(patched.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool { return w.Name == budget.PodWebhook })
	return patched.Webhooks[i].MatchConditions
}

func TestTheOverlayForRoleLabelsExemptsNothingElse(t *testing.T) {
	conditions := withoutRoleLabels(t)
	primary := func(change func(metadata, spec, status object)) object {
		return pod(func(m, s, st object) {
			m["labels"] = object{"app": "web", "role": "primary", "cnpg.io/instanceRole": "primary"}
			if change != nil {
				change(m, s, st)
			}
		})
	}
	replica := func(m, _, _ object) { m["labels"] = object{"app": "web", "role": "replica"} }
	for name, tc := range map[string]struct {
		request  object
		old, new any
		want     bool
	}{
		"roles":        {request("UPDATE", "pods", "", alice), primary(nil), primary(replica), false},
		"a first role": {request("UPDATE", "pods", "", alice), pod(func(m, _, _ object) { delete(m, "labels") }), pod(func(m, _, _ object) { m["labels"] = object{"vault-active": "true"} }), false},
		"the first labels of Vault": {request("UPDATE", "pods", "", alice), pod(func(m, _, _ object) { m["labels"] = object{"app": "vault"} }), pod(func(m, _, _ object) {
			m["labels"] = object{"app": "vault", "vault-active": "false", "vault-version": "1.20.0"}
		}), false},
		"a role, and an annotation of Patroni": {request("UPDATE", "pods", "", alice), primary(nil), primary(func(m, s, st object) { replica(m, s, st); m["annotations"] = object{"status": "{}"} }), false},
		"a role and another label":             {request("UPDATE", "pods", "", alice), primary(nil), primary(func(m, _, _ object) { m["labels"] = object{"app": "db", "role": "replica"} }), true},
		"a role, and a label is removed":       {request("UPDATE", "pods", "", alice), primary(nil), primary(func(m, _, _ object) { m["labels"] = object{"role": "replica"} }), true},
		"a role, and one is added":             {request("UPDATE", "pods", "", alice), pod(nil), primary(func(m, _, _ object) { m["labels"].(object)["unavailable-pod.kruise.io/a"] = "" }), true},
		"a role and an image":                  {request("UPDATE", "pods", "", alice), primary(nil), primary(func(m, s, st object) { replica(m, s, st); s["containers"] = []any{object{"image": "web:2"}} }), true},
		"a role and no-protect": {request("UPDATE", "pods", "", alice), primary(nil), primary(func(m, s, st object) {
			replica(m, s, st)
			m["annotations"] = object{"pub.kruise.io/no-protect": "true"}
		}), true},
		"a role and an owner":  {request("UPDATE", "pods", "", alice), primary(nil), primary(func(m, s, st object) { replica(m, s, st); m["ownerReferences"] = []any{object{"name": "web"}} }), true},
		"a role with a status": {request("UPDATE", "pods", "status", alice), primary(nil), primary(replica), true},
		"a resize":             {request("UPDATE", "pods", "resize", alice), primary(nil), primary(nil), true},
		"a deletion":           {request("DELETE", "pods", "", alice), primary(nil), nil, true},
		"an eviction":          {request("CREATE", "pods", "eviction", alice), nil, object{"metadata": object{"name": "web-1"}}, true},
	} {
		if got := admissiontest.Matches(t, conditions, object{"request": tc.request, "object": tc.new, "oldObject": tc.old}); got != tc.want {
			t.Errorf("%s: reaches the webhook: %t, want %t", name, got, tc.want)
		}
	}
}
