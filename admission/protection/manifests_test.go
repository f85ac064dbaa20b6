package protection

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/admission/protection/budget"
	"github.com/breakwater-dev/breakwater/admission/protection/cascade"
	"github.com/breakwater-dev/breakwater/admission/protection/deletionflow"
	changev1alpha1 "github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/webhookpath"
	"github.com/breakwater-dev/breakwater/test/builder"
)

const manifests = "../../config/protection/"

func webhooks(t *testing.T) []admissionregistrationv1.ValidatingWebhook {
	t.Helper()
	config := builder.Manifests[admissionregistrationv1.ValidatingWebhookConfiguration](t, manifests+"430-webhook-validating.yaml")[0]
	if config.Name != Configuration {
		t.Errorf("the configuration is %s, the controller reconciles %s", config.Name, Configuration)
	}
	added, err := deletionflow.Webhooks(webhookpath.Access{CABundle: []byte("ca"), Key: []byte("key")})
	if err != nil {
		t.Fatal(err)
	}
	return append(config.Webhooks, added...)
}

// Their deletion deletes all budgets and flow controls without a request about these.
func TestTheDefinitionsAreProtectedFromCascadingDeletion(t *testing.T) {
	for _, file := range []string{"100-crd-podunavailablebudgets.yaml", "101-crd-poddeletionflowcontrols.yaml"} {
		all := builder.Manifests[apiextensionsv1.CustomResourceDefinition](t, manifests+file)
		if crd := all[len(all)-1]; !cascade.Enforced(&crd) {
			t.Errorf("%s is not protected: labels %v", crd.Name, crd.Labels)
		}
	}
}

func TestTheConfigurationOfFlowControlIsInstalledEmpty(t *testing.T) {
	config := builder.Manifests[admissionregistrationv1.ValidatingWebhookConfiguration](t, manifests+"431-webhook-deletionflow.yaml")[0]
	if config.Name != deletionflow.Configuration || len(config.Webhooks) > 0 {
		t.Errorf("%s has %d webhooks", config.Name, len(config.Webhooks))
	}
}

func TestEveryWebhookOfTheManifestHasAHandlerAndAFailurePolicy(t *testing.T) {
	served := []string{cascade.Webhook, budget.PodWebhook, budget.OwnerWebhook, budget.RestartWebhook, budget.ObjectWebhook, deletionflow.Webhook, deletionflow.NamespaceWebhook, deletionflow.ObjectWebhook}
	for _, w := range webhooks(t) {
		if !slices.Contains(served, w.Name) {
			t.Errorf("%s has no handler", w.Name)
		}
		served = slices.DeleteFunc(served, func(name string) bool { return name == w.Name })
		s := w.ClientConfig.Service
		if s.Namespace != changev1alpha1.SystemNamespace || s.Name != ServiceName || s.Path != nil && webhookpath.WithoutSecret(*s.Path) != webhookpath.Prefix+w.Name {
			t.Errorf("%s is called at %s/%s%s", w.Name, s.Namespace, s.Name, *s.Path)
		}
		if w.FailurePolicy == nil || w.MatchPolicy == nil || w.SideEffects == nil || ptr.Deref(w.TimeoutSeconds, 10) > 5 {
			t.Errorf("%s relies on a default, or has too long a timeout", w.Name)
		}
	}
	if len(served) > 0 {
		t.Errorf("%v are in no manifest", served)
	}
}

// The pods of other controllers are decided one by one when the garbage collector deletes them,
// and only while the controller exists.
func TestWhichControllersReachTheWebhook(t *testing.T) {
	want := map[admissionregistrationv1.OperationType][]string{
		admissionregistrationv1.Delete: {
			"/replicationcontrollers", "apps.kruise.io/clonesets", "apps.kruise.io/daemonsets", "apps.kruise.io/statefulsets",
			"apps/daemonsets", "apps/deployments", "apps/replicasets", "apps/statefulsets", "batch/jobs", "serving.knative.dev/revisions",
		},
		admissionregistrationv1.Update: {"apps/replicasets", "apps/replicasets/status"},
	}
	got := map[admissionregistrationv1.OperationType][]string{}
	for _, w := range webhooks(t) {
		if w.Name != budget.OwnerWebhook {
			continue
		}
		for _, rule := range w.Rules {
			if len(rule.Operations) != 1 || len(rule.APIGroups) != 1 {
				t.Errorf("%v: %v", rule.Rule, rule.Operations)
			}
			for _, resource := range rule.Resources {
				got[rule.Operations[0]] = append(got[rule.Operations[0]], rule.APIGroups[0]+"/"+resource)
			}
		}
	}
	for _, resources := range got {
		slices.Sort(resources)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWebhooksSelectLabeledNamespacesAndExcludeSystemOnes(t *testing.T) {
	for _, w := range webhooks(t) {
		if w.Name == budget.ObjectWebhook || w.Name == deletionflow.ObjectWebhook || w.Name == cascade.Webhook {
			continue
		}
		if got := w.NamespaceSelector.MatchLabels[v1alpha1.HasBudgetLabel]; got != v1alpha1.HasBudgetValue && w.Name != deletionflow.Webhook && w.Name != deletionflow.NamespaceWebhook {
			t.Errorf("%s: selected by %q", w.Name, got)
		}
		never := w.NamespaceSelector.MatchExpressions[0].Values
		for _, name := range []string{"kube-system", "kube-public", "kube-node-lease", "knative-serving", "knative-eventing", changev1alpha1.SystemNamespace} {
			if !slices.Contains(never, name) || !changev1alpha1.ExcludedNamespace(name) {
				t.Errorf("%s: %s is not excluded", w.Name, name)
			}
		}
	}
}

func TestRBACHasNoWildcardAndNamesWrittenObjects(t *testing.T) {
	named := map[string][]string{}
	for _, file := range []string{"120-webhook-rbac.yaml", "110-controller-rbac.yaml"} {
		for _, role := range builder.Manifests[rbacv1.ClusterRole](t, manifests+file) {
			for _, rule := range role.Rules {
				for _, words := range [][]string{rule.Verbs, rule.Resources, rule.APIGroups} {
					if slices.Contains(words, "*") {
						t.Errorf("%s %s has a wildcard: %v", role.Kind, role.Name, rule)
					}
				}
				onlyBudgets := slices.Equal(rule.Resources, []string{"podunavailablebudgets"}) || slices.Equal(rule.Resources, []string{"poddisruptionbudgets"})
				if slices.Contains(rule.Verbs, "delete") && !onlyBudgets || slices.Contains(rule.Resources, "pods") && slices.Contains(rule.Verbs, "patch") {
					t.Errorf("%s %s has an excluded permission: %v", role.Kind, role.Name, rule)
				}
				for _, resource := range rule.Resources {
					named[resource] = append(named[resource], rule.ResourceNames...)
				}
			}
		}
	}
	for resource, want := range map[string][]string{
		"validatingwebhookconfigurations": {Configuration, deletionflow.Configuration},
		"secrets":                         {SecretName},
	} {
		for _, name := range want {
			if !slices.Contains(named[resource], name) {
				t.Errorf("%s: %v does not have %s", resource, named[resource], name)
			}
		}
	}
}
