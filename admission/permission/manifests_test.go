package permission

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/admissiontest"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/permission/podbreaker"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/permission/settings"
	"github.com/breakwater-dev/breakwater/test/gen"
)

const manifests = "../../config/permission/"

func mutating(t *testing.T) admissionregistrationv1.MutatingWebhook {
	t.Helper()
	config := gen.Manifests[admissionregistrationv1.MutatingWebhookConfiguration](t, manifests+"430-webhook-mutating.yaml")[0]
	if config.Name != Configuration || len(config.Webhooks) != 1 {
		t.Fatalf("%s has %d webhooks", config.Name, len(config.Webhooks))
	}
	return config.Webhooks[0]
}

func validating(t *testing.T) admissionregistrationv1.ValidatingWebhook {
	t.Helper()
	config := gen.Manifests[admissionregistrationv1.ValidatingWebhookConfiguration](t, manifests+"431-webhook-validating.yaml")[0]
	if config.Name != Configuration || len(config.Webhooks) != 1 {
		t.Fatalf("%s has %d webhooks", config.Name, len(config.Webhooks))
	}
	return config.Webhooks[0]
}

func TestTheWebhooksOfTheManifestsAreServedAndSayWhatHappensWhileTheyAreDown(t *testing.T) {
	m, v := mutating(t), validating(t)
	if m.Name != PodWebhook || v.Name != SetWebhook {
		t.Errorf("%s and %s are not served", m.Name, v.Name)
	}
	if ptr.Deref(m.FailurePolicy, "") != admissionregistrationv1.Fail || ptr.Deref(v.FailurePolicy, "") != admissionregistrationv1.Ignore {
		t.Error("a pod must not get in without, and a workload must not be held by us")
	}
	if ptr.Deref(m.ReinvocationPolicy, "") != admissionregistrationv1.IfNeededReinvocationPolicy {
		t.Error("who adds containers after us would come first")
	}
	for name, c := range map[string]admissionregistrationv1.WebhookClientConfig{m.Name: m.ClientConfig, v.Name: v.ClientConfig} {
		if s := c.Service; s.Namespace != v1alpha1.SystemNamespace || s.Name != ServiceName || *s.Path != admission.PathPrefix+name {
			t.Errorf("%s is asked at %s/%s%s", name, s.Namespace, s.Name, *s.Path)
		}
	}
	if ptr.Deref(m.TimeoutSeconds, 10) > 5 || ptr.Deref(v.TimeoutSeconds, 10) > 5 {
		t.Error("they take too long")
	}
	for _, s := range []string{"kube-system", "kube-public", "kube-node-lease", "knative-serving", "knative-eventing", v1alpha1.SystemNamespace} {
		if !slices.Contains(m.NamespaceSelector.MatchExpressions[0].Values, s) || !slices.Contains(v.NamespaceSelector.MatchExpressions[0].Values, s) {
			t.Errorf("%s is not left out everywhere", s)
		}
	}
	if m.NamespaceSelector.MatchLabels[podmeta.Label] != podmeta.LabelEnabled || v.NamespaceSelector.MatchLabels[podmeta.Label] != podmeta.LabelEnabled {
		t.Error("namespaces that are not enabled are asked about")
	}
}

type object = map[string]any

func asking(value string) object {
	return object{"metadata": object{"annotations": object{podmeta.SetAnnotation: value}}}
}

func templated(value string) object {
	return object{"metadata": object{"name": "web"}, "spec": object{"template": asking(value)}}
}

func TestOnlyWhatNamesSetsAndChangesThemLeavesTheAPIServer(t *testing.T) {
	conditions := validating(t).MatchConditions
	plain := object{"metadata": object{"name": "web"}, "spec": object{"replicas": int64(1)}}
	cron := object{"metadata": object{"name": "web"}, "spec": object{"jobTemplate": object{"spec": object{"template": asking("a")}}}}
	scaled := templated("a")
	scaled["spec"].(object)["replicas"] = int64(5)
	for name, tc := range map[string]struct {
		operation   string
		object, old object
		want        bool
	}{
		"a workload that asks for nothing":  {"CREATE", plain, nil, false},
		"one that asks":                     {"CREATE", asking("a"), nil, true},
		"one that asks in its template":     {"CREATE", templated("a"), nil, true},
		"a CronJob":                         {"CREATE", cron, nil, true},
		"one that asks for none":            {"CREATE", asking(""), nil, false},
		"one that asks for something else":  {"UPDATE", asking("b"), asking("a"), true},
		"one that begins to ask":            {"UPDATE", templated("a"), plain, true},
		"one that asks for the same":        {"UPDATE", asking("a"), asking("a"), false},
		"one that is scaled":                {"UPDATE", scaled, templated("a"), false},
		"one that does not ask any more":    {"UPDATE", plain, templated("a"), false},
		"a namespace, whatever else it has": {"UPDATE", asking("a"), object{"metadata": object{"name": "shop"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			vars := map[string]any{"request": object{"operation": tc.operation}, "object": tc.object, "oldObject": nil}
			if tc.old != nil {
				vars["oldObject"] = tc.old
			}
			if got := admissiontest.Matches(t, conditions, vars); got != tc.want {
				t.Errorf("matches: %v", got)
			}
		})
	}
}

func TestMirrorsOfStaticPodsAreLeftAlone(t *testing.T) {
	conditions := mutating(t).MatchConditions
	mirror := object{"metadata": object{"annotations": object{corev1.MirrorPodAnnotationKey: "x"}}}
	for name, tc := range map[string]struct {
		object object
		want   bool
	}{"a mirror": {mirror, false}, "a pod": {asking("a"), true}, "a pod without annotations": {object{"metadata": object{}}, true}} {
		if got := admissiontest.Matches(t, conditions, map[string]any{"request": object{}, "object": tc.object, "oldObject": nil}); got != tc.want {
			t.Errorf("%s matches: %v", name, got)
		}
	}
}

func TestRBACHasNoWildcardAndNamesWhatIsWritten(t *testing.T) {
	named := map[string][]string{}
	files, err := filepath.Glob(manifests + "1*-rbac.yaml")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		for _, role := range gen.Manifests[rbacv1.ClusterRole](t, file) {
			for _, rule := range role.Rules {
				for _, words := range [][]string{rule.Verbs, rule.Resources, rule.APIGroups} {
					if slices.Contains(words, "*") {
						t.Errorf("%s %s has a wildcard: %v", role.Kind, role.Name, rule)
					}
				}
				if slices.Contains(rule.Verbs, "delete") || slices.Contains(rule.Verbs, "deletecollection") || slices.Contains(rule.Resources, "secrets") && len(rule.ResourceNames) == 0 {
					t.Errorf("%s %s may do what it says that it cannot: %v", role.Kind, role.Name, rule)
				}
				for _, resource := range rule.Resources {
					named[resource] = append(named[resource], rule.ResourceNames...)
				}
			}
		}
	}
	for resource, want := range map[string][]string{
		"mutatingwebhookconfigurations":   {Configuration},
		"validatingwebhookconfigurations": {Configuration},
		"secrets":                         {SecretName},
		"configmaps":                      podbreaker.ConfigMapNames(),
	} {
		for _, name := range want {
			if !slices.Contains(named[resource], name) {
				t.Errorf("%s: %v does not have %s", resource, named[resource], name)
			}
		}
	}
}

func TestWhatIsInstalledIsTheDefaultAndEveryValueIsExplained(t *testing.T) {
	file := manifests + "200-config-permission.yaml"
	cm := gen.Manifests[corev1.ConfigMap](t, file)[0]
	got, err := settings.Parse(cm.Data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(settings.Default(), got); diff != "" {
		t.Errorf("(-default +installed):\n%s", diff)
	}
	if cm.Name != podmeta.ConfigName {
		t.Errorf("it is called %s", cm.Name)
	}
	record := gen.Manifests[corev1.ConfigMap](t, manifests+"210-breaker.yaml")[0]
	if record.Name != podbreaker.PrimaryName || record.Labels[podbreaker.Label] != "true" || record.Data != nil {
		t.Errorf("the record is %+v: applying it again would take entries away", record)
	}
}

func TestItNeedsNoKnative(t *testing.T) {
	files, err := filepath.Glob(manifests + "*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			if strings.HasPrefix(line, "apiVersion:") && strings.Contains(line, "knative.dev") {
				t.Errorf("%s has a Knative object: %s", file, line)
			}
		}
	}
}
