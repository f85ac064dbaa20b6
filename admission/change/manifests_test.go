package change

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/admission/change/opsconfig"
	"github.com/breakwater-dev/breakwater/admission/change/releasecheck"
	"github.com/breakwater-dev/breakwater/admission/change/suspend"
	"github.com/breakwater-dev/breakwater/admission/change/version"
	"github.com/breakwater-dev/breakwater/admission/change/workloadkinds"
	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/webhookpath"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

const manifests = "../../config/core/"

func configurations(t *testing.T) (admissionregistrationv1.MutatingWebhookConfiguration, admissionregistrationv1.ValidatingWebhookConfiguration) {
	t.Helper()
	return builder.Manifests[admissionregistrationv1.MutatingWebhookConfiguration](t, manifests+"430-webhook-mutating.yaml")[0],
		builder.Manifests[admissionregistrationv1.ValidatingWebhookConfiguration](t, manifests+"431-webhook-validating.yaml")[0]
}

// common has the fields that mutating and validating webhooks share.
func common(t *testing.T) []admissionregistrationv1.ValidatingWebhook {
	t.Helper()
	mutating, validating := configurations(t)
	all := validating.Webhooks
	for _, w := range mutating.Webhooks {
		all = append(all, admissionregistrationv1.ValidatingWebhook{
			Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
			NamespaceSelector: w.NamespaceSelector, SideEffects: w.SideEffects, TimeoutSeconds: w.TimeoutSeconds,
		})
	}
	return all
}

func TestEveryWebhookOfTheManifestsIsServedAndNoOther(t *testing.T) {
	served := handlers{kinds: func() workloadkinds.State { return workloadkinds.State{Kinds: workload.BuiltIn()} }}
	installed := map[string]bool{}
	for _, w := range common(t) {
		if _, ok := served.find(w.Name); !ok {
			t.Errorf("%s is not served", w.Name)
		}
		installed[w.Name] = true
		s := w.ClientConfig.Service
		if s.Namespace != v1alpha1.SystemNamespace || s.Name != ServiceName || s.Path != nil && webhookpath.WithoutSecret(*s.Path) != webhookpath.Prefix+w.Name {
			t.Errorf("%s is asked at %s/%s%s", w.Name, s.Namespace, s.Name, *s.Path)
		}
	}
	names := []string{releasecheck.Webhook, opsconfig.TrimmingWebhook, opsconfig.ValidatingWebhook, workloadkinds.Webhook}
	for _, kind := range workload.BuiltIn() {
		names = append(names, suspend.MutatingWebhook(kind), suspend.ValidatingWebhook(kind))
	}
	for _, name := range names {
		if !installed[name] {
			t.Errorf("%s is in no manifest", name)
		}
	}
}

func TestAKindThatIsNamedIsServed(t *testing.T) {
	kind := workload.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"}}
	advanced := workload.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "StatefulSet"}}
	h := handlers{kinds: func() workloadkinds.State {
		return workloadkinds.State{Kinds: append(workload.BuiltIn(), kind, advanced)}
	}}
	if s, ok := h.find("mcloneset.apps.kruise.io.kb.io"); !ok || s.(version.Handler).Kind.Kind != "CloneSet" {
		t.Errorf("got %v", s)
	}
	if g, ok := h.find("vcloneset.apps.kruise.io.kb.io"); !ok || g.(suspend.Handler).Kind.Kind != "CloneSet" {
		t.Errorf("got %v", g)
	}
	if g, ok := h.find("vstatefulset.kb.io"); !ok || g.(suspend.Handler).Kind.Group != "apps" {
		t.Errorf("got %v", g)
	}
	if g, ok := h.find("vstatefulset.apps.kruise.io.kb.io"); !ok || g.(suspend.Handler).Kind.Group != "apps.kruise.io" {
		t.Errorf("got %v", g)
	}
	if _, ok := h.find("vrollout.argoproj.io.kb.io"); ok {
		t.Error("a kind that is not named is served")
	}
}

func TestEveryWebhookSetsItsPoliciesAndAShortTimeout(t *testing.T) {
	for _, w := range common(t) {
		if w.FailurePolicy == nil || w.MatchPolicy == nil || w.SideEffects == nil {
			t.Errorf("%s leaves something to a default", w.Name)
		}
		if s := ptr.Deref(w.TimeoutSeconds, 10); s > 5 {
			t.Errorf("%s may take %d s", w.Name, s)
		}
		for _, r := range w.Rules {
			for _, resource := range r.Resources {
				if strings.Contains(resource, "/") || strings.Contains(resource, "*") {
					t.Errorf("%s is asked about %s", w.Name, resource)
				}
			}
			exempt := slices.ContainsFunc(w.MatchConditions, func(c admissionregistrationv1.MatchCondition) bool { return c.Name == "is-not-deleted-by-kubernetes" })
			if slices.Contains(r.Operations, admissionregistrationv1.Delete) && !exempt || slices.Contains(r.Operations, admissionregistrationv1.OperationAll) {
				t.Errorf("%s is asked about deletions: namespaces could not terminate while it is down", w.Name)
			}
		}
	}
}

func TestTheWebhooksSelectTheNamespacesThatCanOptIn(t *testing.T) {
	for _, w := range common(t) {
		if !strings.Contains(w.Name, "config") {
			checkSelectsNamespacesThatCanOptIn(t, w.Name, w.NamespaceSelector)
		}
	}
}

func TestThePoliciesSelectTheNamespacesThatCanOptIn(t *testing.T) {
	files, err := filepath.Glob(manifests + "4*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range files {
		for _, p := range builder.Manifests[admissionregistrationv1.ValidatingAdmissionPolicy](t, file) {
			if p.Spec.MatchConstraints == nil || p.Spec.MatchConstraints.NamespaceSelector == nil {
				continue
			}
			if selector := p.Spec.MatchConstraints.NamespaceSelector; selector.MatchLabels[v1alpha1.NamespaceLabel] != "" {
				checkSelectsNamespacesThatCanOptIn(t, p.Name, selector)
				checked++
			}
		}
	}
	if checked == 0 {
		t.Error("no policy selects namespaces by their label")
	}
}

func checkSelectsNamespacesThatCanOptIn(t *testing.T, name string, selector *metav1.LabelSelector) {
	t.Helper()
	if got := selector.MatchLabels[v1alpha1.NamespaceLabel]; got != v1alpha1.NamespaceEnabled {
		t.Errorf("%s: opted in by %q", name, got)
	}
	if len(selector.MatchExpressions) != 1 {
		t.Errorf("%s: no namespace is left out", name)
		return
	}
	never := selector.MatchExpressions[0].Values
	for _, namespace := range []string{"kube-system", "kube-public", "kube-node-lease", "knative-serving", "knative-eventing", v1alpha1.SystemNamespace} {
		if !slices.Contains(never, namespace) || !v1alpha1.ExcludedNamespace(namespace) {
			t.Errorf("%s: %s is not left out everywhere", name, namespace)
		}
	}
	for _, namespace := range never {
		if !v1alpha1.ExcludedNamespace(namespace) {
			t.Errorf("%s: the controller guards %s", name, namespace)
		}
	}
}

func TestRBACNamesTheObjectsThatTheWebhookWrites(t *testing.T) {
	mutating, validating := configurations(t)
	if mutating.Name != Configuration || validating.Name != Configuration {
		t.Errorf("the configurations are %s and %s, not %s", mutating.Name, validating.Name, Configuration)
	}
	named := map[string][]string{}
	for _, role := range builder.Manifests[rbacv1.ClusterRole](t, manifests+"120-webhook-rbac.yaml") {
		for _, rule := range role.Rules {
			for _, words := range [][]string{rule.Verbs, rule.Resources, rule.APIGroups} {
				if slices.Contains(words, "*") {
					t.Errorf("%s %s has a wildcard: %v", role.Kind, role.Name, rule)
				}
			}
			for _, resource := range rule.Resources {
				named[resource] = append(named[resource], rule.ResourceNames...)
			}
		}
	}
	if !slices.Contains(named["secrets"], altershield.SecretName) {
		t.Errorf("the token is not among the secrets %v", named["secrets"])
	}
	for resource, want := range map[string][]string{
		"mutatingwebhookconfigurations":   {Configuration, Generated},
		"validatingwebhookconfigurations": {Configuration, Generated},
		"secrets":                         {SecretName},
		"namespaces":                      nil,
		"subjectaccessreviews":            nil,
	} {
		names, ok := named[resource]
		if !ok {
			t.Errorf("%s: no rule", resource)
		}
		for _, name := range want {
			if !slices.Contains(names, name) {
				t.Errorf("%s: %v does not have %s", resource, names, name)
			}
		}
	}
}
