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

	"github.com/breakwater-dev/breakwater/admission/admissiontest"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/webhookpath"
	"github.com/breakwater-dev/breakwater/permission/podbreaker"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/permission/settings"
	"github.com/breakwater-dev/breakwater/test/builder"
)

const manifests = "../../config/permission/"

func mutating(t *testing.T) admissionregistrationv1.MutatingWebhook {
	t.Helper()
	config := builder.Manifests[admissionregistrationv1.MutatingWebhookConfiguration](t, manifests+"430-webhook-mutating.yaml")[0]
	if config.Name != Configuration || len(config.Webhooks) != 1 {
		t.Fatalf("%s has %d webhooks", config.Name, len(config.Webhooks))
	}
	return config.Webhooks[0]
}

func validating(t *testing.T) admissionregistrationv1.ValidatingWebhook {
	t.Helper()
	config := builder.Manifests[admissionregistrationv1.ValidatingWebhookConfiguration](t, manifests+"431-webhook-validating.yaml")[0]
	if config.Name != Configuration || len(config.Webhooks) != 1 {
		t.Fatalf("%s has %d webhooks", config.Name, len(config.Webhooks))
	}
	return config.Webhooks[0]
}

func TestTheManifestsConfigureTheWebhooks(t *testing.T) {
	m, v := mutating(t), validating(t)
	if m.Name != PodWebhook || v.Name != WorkloadWebhook {
		t.Errorf("the webhooks are named %s and %s", m.Name, v.Name)
	}
	if ptr.Deref(m.FailurePolicy, "") != admissionregistrationv1.Fail || ptr.Deref(v.FailurePolicy, "") != admissionregistrationv1.Ignore {
		t.Error("the failure policy must be Fail for pods and Ignore for workloads")
	}
	if ptr.Deref(m.ReinvocationPolicy, "") != admissionregistrationv1.IfNeededReinvocationPolicy {
		t.Error("the reinvocation policy must be IfNeeded")
	}
	for name, c := range map[string]admissionregistrationv1.WebhookClientConfig{m.Name: m.ClientConfig, v.Name: v.ClientConfig} {
		if s := c.Service; s.Namespace != v1alpha1.SystemNamespace || s.Name != ServiceName || s.Path != nil && webhookpath.WithoutSecret(*s.Path) != webhookpath.Prefix+name {
			t.Errorf("%s has the address %s/%s%s", name, s.Namespace, s.Name, *s.Path)
		}
	}
	if ptr.Deref(m.TimeoutSeconds, 10) > 5 || ptr.Deref(v.TimeoutSeconds, 10) > 5 {
		t.Error("a timeout exceeds 5 s")
	}
	for _, s := range []string{"kube-system", "kube-public", "kube-node-lease", "knative-serving", "knative-eventing", v1alpha1.SystemNamespace} {
		if !slices.Contains(m.NamespaceSelector.MatchExpressions[0].Values, s) || !slices.Contains(v.NamespaceSelector.MatchExpressions[0].Values, s) {
			t.Errorf("namespace %s is not excluded", s)
		}
	}
	if m.NamespaceSelector.MatchLabels[podmeta.Label] != podmeta.LabelEnabled || v.NamespaceSelector.MatchLabels[podmeta.Label] != podmeta.LabelEnabled {
		t.Error("the webhooks select namespaces without the label")
	}
}

type object = map[string]any

func withSets(value string) object {
	return object{"metadata": object{"annotations": object{podmeta.PermissionSetAnnotation: value}}}
}

func withTemplate(value string) object {
	return object{"metadata": object{"name": "web"}, "spec": object{"template": withSets(value)}}
}

func TestOnlyObjectsWithChangedSetsAreSentToTheWebhook(t *testing.T) {
	conditions := validating(t).MatchConditions
	plain := object{"metadata": object{"name": "web"}, "spec": object{"replicas": int64(1)}}
	cron := object{"metadata": object{"name": "web"}, "spec": object{"jobTemplate": object{"spec": object{"template": withSets("a")}}}}
	scaled := withTemplate("a")
	scaled["spec"].(object)["replicas"] = int64(5)
	for name, tc := range map[string]struct {
		operation   string
		object, old object
		want        bool
	}{
		"a workload without sets": {"CREATE", plain, nil, false},
		"sets on the workload":    {"CREATE", withSets("a"), nil, true},
		"sets in the template":    {"CREATE", withTemplate("a"), nil, true},
		"a CronJob":               {"CREATE", cron, nil, true},
		"the Jobs of a CronJob":   {"CREATE", cronOfJobs("a"), nil, true},
		"changed sets of Jobs":    {"UPDATE", cronOfJobs("b"), cronOfJobs("a"), true},
		"unchanged sets of Jobs":  {"UPDATE", cronOfJobs("a"), cronOfJobs("a"), false},
		"an empty value":          {"CREATE", withSets(""), nil, false},
		"changed sets":            {"UPDATE", withSets("b"), withSets("a"), true},
		"added sets":              {"UPDATE", withTemplate("a"), plain, true},
		"unchanged sets":          {"UPDATE", withSets("a"), withSets("a"), false},
		"scaled workload":         {"UPDATE", scaled, withTemplate("a"), false},
		"removed sets":            {"UPDATE", plain, withTemplate("a"), false},
		"a namespace":             {"UPDATE", withSets("a"), object{"metadata": object{"name": "shop"}}, true},
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

// cronOfJobs returns a CronJob with sets in its jobTemplate. The CronJob controller copies its annotations to each Job.
func cronOfJobs(value string) object {
	return object{"metadata": object{"name": "web"}, "spec": object{"jobTemplate": withSets(value)}}
}

func TestWorkloadsThatRequestSetsAreWarnedOfANamespaceThatIsNotEnabled(t *testing.T) {
	policy := builder.Manifests[admissionregistrationv1.ValidatingAdmissionPolicy](t, manifests+"301-namespace.yaml")[0]
	for name, tc := range map[string]struct {
		object object
		want   bool
	}{
		"a workload without sets":    {object{"metadata": object{"name": "web"}}, false},
		"an empty value":             {withSets(""), false},
		"sets on the workload":       {withSets("a"), true},
		"sets in the template":       {withTemplate("a"), true},
		"the Jobs of a CronJob":      {cronOfJobs("a"), true},
		"the pods of a CronJob":      {object{"metadata": object{}, "spec": object{"jobTemplate": object{"spec": object{"template": withSets("a")}}}}, true},
		"an empty value of its Jobs": {cronOfJobs(""), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := admissiontest.Matches(t, policy.Spec.MatchConditions, map[string]any{"request": object{}, "object": tc.object, "oldObject": nil}); got != tc.want {
				t.Errorf("matches: %v", got)
			}
		})
	}
}

func TestMirrorPodsAreExcluded(t *testing.T) {
	conditions := mutating(t).MatchConditions
	mirror := object{"metadata": object{"annotations": object{corev1.MirrorPodAnnotationKey: "x"}}}
	for name, tc := range map[string]struct {
		object object
		want   bool
	}{"a mirror pod": {mirror, false}, "a pod": {withSets("a"), true}, "a pod without annotations": {object{"metadata": object{}}, true}} {
		if got := admissiontest.Matches(t, conditions, map[string]any{"request": object{}, "object": tc.object, "oldObject": nil}); got != tc.want {
			t.Errorf("%s matches: %v", name, got)
		}
	}
}

func TestRBACHasNoWildcardsAndNamesTheWrittenObjects(t *testing.T) {
	named := map[string][]string{}
	files, err := filepath.Glob(manifests + "1*-rbac.yaml")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		for _, role := range builder.Manifests[rbacv1.ClusterRole](t, file) {
			for _, rule := range role.Rules {
				for _, values := range [][]string{rule.Verbs, rule.Resources, rule.APIGroups} {
					if slices.Contains(values, "*") {
						t.Errorf("%s %s has a wildcard: %v", role.Kind, role.Name, rule)
					}
				}
				if slices.Contains(rule.Verbs, "delete") || slices.Contains(rule.Verbs, "deletecollection") || slices.Contains(rule.Resources, "secrets") && len(rule.ResourceNames) == 0 {
					t.Errorf("%s %s has a forbidden right: %v", role.Kind, role.Name, rule)
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
		"secrets":                         {SecretName, "permission-ca", "permission-centre-certs", "init-action-server-certs"},
		"configmaps":                      podbreaker.ConfigMapNames(),
	} {
		for _, name := range want {
			if !slices.Contains(named[resource], name) {
				t.Errorf("%s: resource names %v lack %s", resource, named[resource], name)
			}
		}
	}
}

func TestTheInstalledConfigMapsContainTheDefaults(t *testing.T) {
	file := manifests + "200-config-permission.yaml"
	cm := builder.Manifests[corev1.ConfigMap](t, file)[0]
	got, unknown, err := settings.Parse(cm.Data)
	if err != nil || len(unknown) > 0 {
		t.Fatal(unknown, err)
	}
	if diff := cmp.Diff(settings.Default(), got); diff != "" {
		t.Errorf("(-default +installed):\n%s", diff)
	}
	if cm.Name != podmeta.ConfigName {
		t.Errorf("the ConfigMap is named %s", cm.Name)
	}
	record := builder.Manifests[corev1.ConfigMap](t, manifests+"210-breaker.yaml")[0]
	if record.Name != podbreaker.PrimaryName || record.Labels[podbreaker.Label] != "true" || record.Data != nil {
		t.Errorf("the breaker ConfigMap is %+v; applying it again would remove entries", record)
	}
}

func TestTheManifestsNeedNoKnative(t *testing.T) {
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
				t.Errorf("%s contains a Knative object: %s", file, line)
			}
		}
	}
}
