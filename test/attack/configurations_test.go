//go:build controlplane

package attack

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	admission "github.com/breakwater-dev/breakwater/admission/change"
	"github.com/breakwater-dev/breakwater/admission/change/workloadkinds"
	"github.com/breakwater-dev/breakwater/admission/protection/deletionflow"
	"github.com/breakwater-dev/breakwater/admission/server/webhookconfig"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/webhookpath"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/e2e/impersonation"
)

const (
	mutating   = "mutatingwebhookconfigurations"
	validating = "validatingwebhookconfigurations"
)

// everything are rules that match all requests.
var everything = []admissionregistrationv1.RuleWithOperations{{
	Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
	Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}, Scope: new(admissionregistrationv1.AllScopes)},
}}

// An attacker who takes over a webhook cannot send requests of the cluster to another server, nor
// requests that the webhook does not decide to it.
func TestTheServiceAccountsOfWebhooksWriteOnlyCABundlesAndPaths(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ account, resource, name, webhook string }{
		{"webhook", mutating, admission.Configuration, "mdeployment.kb.io"},
		{"webhook", validating, admission.Configuration, "vdeployment.kb.io"},
		{"permission-webhook", mutating, "breakwater-permission", "mpodpermission.kb.io"},
		{"permission-webhook", validating, "breakwater-permission", "vpermissionset.kb.io"},
		{"protection-webhook", validating, "breakwater-protection", "vpodbudget.kb.io"},
	} {
		for patch, want := range map[string]string{
			// Its work.
			`{"webhooks":[{"name":"W","clientConfig":{"caBundle":"YQ==","service":{"path":"/admission/1-a/w"}}}]}`: "",

			`{"webhooks":[{"name":"W","clientConfig":{"url":"https://evil.example/","service":null}}]}`:                                                 "only caBundle",
			`{"webhooks":[{"name":"W","clientConfig":{"service":{"name":"evil"}}}]}`:                                                                    "only caBundle",
			`{"webhooks":[{"name":"W","clientConfig":{"service":{"namespace":"default"}}}]}`:                                                            "only caBundle",
			`{"webhooks":[{"name":"W","clientConfig":{"service":{"port":8443}}}]}`:                                                                      "only caBundle",
			`{"webhooks":[{"name":"W","rules":[{"apiGroups":["*"],"apiVersions":["*"],"operations":["*"],"resources":["*/*"]}]}]}`:                      "only caBundle",
			`{"webhooks":[{"name":"W","namespaceSelector":{"$patch":"replace"}}]}`:                                                                      "only caBundle",
			`{"webhooks":[{"name":"W","objectSelector":{"matchLabels":{"no":"object"}}}]}`:                                                              "only caBundle",
			`{"webhooks":[{"name":"W","timeoutSeconds":29}]}`:                                                                                           "only caBundle",
			`{"webhooks":[{"name":"W","matchConditions":[{"name":"never","expression":"false"}]}]}`:                                                     "only caBundle",
			`{"webhooks":[{"name":"W","$patch":"delete"}]}`:                                                                                             "only caBundle",
			`{"webhooks":[{"name":"evil.kb.io","sideEffects":"None","admissionReviewVersions":["v1"],"clientConfig":{"url":"https://evil.example/"}}]}`: "only caBundle",
			`{"metadata":{"labels":{"a":"b"}}}`:                                                                                                         "labels",
			`{"metadata":{"annotations":{"a":"b"}}}`:                                                                                                    "annotations",
			`{"metadata":{"annotations":{"a":"b","app.ops.cloud.alipay.com/installed":"{}"}}}`:                                                          "annotations",
			`{"metadata":{"annotations":{"app.ops.cloud.alipay.com/kinds":"[]"}}}`:                                                                      "annotations",
			`{"metadata":{"finalizers":["a.example/b"]}}`:                                                                                               "finalizers",
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"unknown"}]}}`:                                      "owners",
		} {
			t.Run(tc.account+" "+tc.resource+" "+patch, func(t *testing.T) {
				patch := strings.ReplaceAll(patch, `"W"`, `"`+tc.webhook+`"`)
				impersonation.ExpectConfigurationPatch(t, tc.account, want, tc.resource, tc.name, types.StrategicMergePatchType, []byte(patch))
			})
		}
		mayNotPatch(t, tc.account, tc.resource, "of-another-product")
	}
	impersonation.ExpectConfigurationPatch(t, "webhook", "", mutating, admission.Configuration, types.StrategicMergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+webhookconfig.InstalledAnnotation+`":"{}"}}}`))
}

// mayNotPatch requires that RBAC denies the creation of any webhook configuration and the patch
// of one.
func mayNotPatch(t *testing.T, account, resource, name string) {
	t.Helper()
	for _, action := range [][]string{{"create", resource}, {"update", resource + "/" + name}, {"patch", resource + "/" + name}, {"delete", resource + "/" + name}} {
		args := append([]string{"auth", "can-i", "--as", "system:serviceaccount:" + v1alpha1.SystemNamespace + ":" + account}, action...)
		out, err := exec.CommandContext(t.Context(), "kubectl", args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "no\n") {
			t.Errorf("may %s %v: %s", account, action, out)
		}
	}
}

// listedKinds is a list of ConfigMap config-workloads.
const listedKinds = "- {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, revisions: ControllerRevision, pause: spec.updateStrategy.paused}"

// forgedGenerations are webhooks that the webhook must not generate, and a part of the denials.
var forgedGenerations = map[string]struct {
	want   string
	change func(w *admissionregistrationv1.MutatingWebhook)
}{
	"another server": {"only Service webhook", func(w *admissionregistrationv1.MutatingWebhook) {
		w.ClientConfig.Service, w.ClientConfig.URL = nil, new("https://evil.example/")
	}},
	"another Service":                {"only Service webhook", func(w *admissionregistrationv1.MutatingWebhook) { w.ClientConfig.Service.Name = "evil" }},
	"a Service of another namespace": {"only Service webhook", func(w *admissionregistrationv1.MutatingWebhook) { w.ClientConfig.Service.Namespace = "default" }},
	"all requests":                   {"only named kinds", func(w *admissionregistrationv1.MutatingWebhook) { w.Rules = everything }},
	"pods also": {"only named kinds", func(w *admissionregistrationv1.MutatingWebhook) {
		w.Rules[0].APIGroups, w.Rules[0].Resources = []string{"apps.kruise.io", ""}, []string{"pods"}
	}},
	"built-in workloads": {"only named kinds", func(w *admissionregistrationv1.MutatingWebhook) {
		w.Rules[0].APIGroups, w.Rules[0].Resources = []string{"apps"}, []string{"daemonsets"}
	}},
	"bindings of roles": {"only named kinds", func(w *admissionregistrationv1.MutatingWebhook) {
		w.Rules[0].APIGroups, w.Rules[0].Resources = []string{"rbac.authorization.k8s.io"}, []string{"rolebindings"}
	}},
	"all kinds of a group": {"only named kinds", func(w *admissionregistrationv1.MutatingWebhook) { w.Rules[0].Resources = []string{"*"} }},
	"subresources":         {"only named kinds", func(w *admissionregistrationv1.MutatingWebhook) { w.Rules[0].Resources = []string{"clonesets/scale"} }},
	"cluster-scoped kinds": {"only named kinds", func(w *admissionregistrationv1.MutatingWebhook) {
		w.Rules[0].Scope = new(admissionregistrationv1.AllScopes)
	}},
	"all namespaces": {"opted in", func(w *admissionregistrationv1.MutatingWebhook) { w.NamespaceSelector = nil }},
}

// The webhook generates configurations for the kinds of ConfigMap config-workloads. An attacker
// cannot generate others, neither while the configuration exists nor before.
func TestTheServiceAccountOfTheWebhookGeneratesOnlyWebhooksForOtherKinds(t *testing.T) {
	f := newFixture(t)
	t.Run("create", f.generate)
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		kubectl(t, `{apiVersion: admissionregistration.k8s.io/v1, kind: `+kind+`, metadata: {name: `+admission.Generated+`}}`, "create", "-f", "-")
	}
	t.Cleanup(func() {
		configs := f.Kube.AdmissionregistrationV1()
		if err := errors.Join(configs.MutatingWebhookConfigurations().Delete(context.Background(), admission.Generated, metav1.DeleteOptions{}),
			configs.ValidatingWebhookConfigurations().Delete(context.Background(), admission.Generated, metav1.DeleteOptions{})); err != nil {
			t.Error(err)
		}
	})
	t.Run("update", f.generate)
}

// generate applies the configurations that the webhook generates, and those that it must not
// generate.
func (f fixture) generate(t *testing.T) {
	configs := f.Kube.AdmissionregistrationV1()
	mutates, err := configs.MutatingWebhookConfigurations().Get(t.Context(), admission.Configuration, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	validates, err := configs.ValidatingWebhookConfigurations().Get(t.Context(), admission.Configuration, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := workload.Kinds(map[string]string{workload.KindsKey: listedKinds})
	if err != nil {
		t.Fatal(err)
	}
	access := webhookpath.Access{CABundle: mutates.Webhooks[0].ClientConfig.CABundle, Key: []byte("key"), Time: time.Now()}
	validatingWebhooks, err := workloadkinds.ValidatingWebhooks(validates.Webhooks, kinds, access)
	if err != nil {
		t.Fatal(err)
	}
	webhooks := func() []admissionregistrationv1.MutatingWebhook {
		all, err := workloadkinds.MutatingWebhooks(mutates.Webhooks, kinds, access)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	owner := metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: v1alpha1.SystemNamespace, UID: "u"}}}
	expectGenerated(t, "", mutating, owner, webhooks())
	expectGenerated(t, "", validating, owner, validatingWebhooks)
	for what, tc := range forgedGenerations {
		t.Run(what, func(t *testing.T) {
			forged := webhooks()
			tc.change(&forged[0])
			expectGenerated(t, tc.want, mutating, owner, forged)
		})
	}
	owner.OwnerReferences[0].Kind = "ConfigMap"
	expectGenerated(t, "owned only", mutating, owner, webhooks())
	expectGenerated(t, "no finalizers", mutating, metav1.ObjectMeta{Finalizers: []string{"a.example/b"}}, webhooks())
}

// expectGenerated applies a generated configuration as the webhook does. The denial must contain want;
// there must be none if want is empty.
func expectGenerated(t *testing.T, want, resource string, meta metav1.ObjectMeta, webhooks any) {
	t.Helper()
	meta.Name = admission.Generated
	kind := map[string]string{mutating: "MutatingWebhookConfiguration", validating: "ValidatingWebhookConfiguration"}[resource]
	raw, err := json.Marshal(map[string]any{
		"apiVersion": admissionregistrationv1.SchemeGroupVersion.String(), "kind": kind, "metadata": meta, "webhooks": webhooks,
	})
	if err != nil {
		t.Fatal(err)
	}
	impersonation.ExpectConfigurationPatch(t, "webhook", want, resource, meta.Name, types.ApplyPatchType, raw)
}

// The protection webhook registers the webhooks of deletion flow control. An attacker cannot
// register others.
func TestTheServiceAccountOfProtectionRegistersOnlyDeletionFlow(t *testing.T) {
	t.Parallel()
	for what, tc := range map[string]struct {
		want   string
		change func(w *admissionregistrationv1.ValidatingWebhook)
	}{
		"its work": {"", func(*admissionregistrationv1.ValidatingWebhook) {}},
		"another server": {"only Service protection-webhook", func(w *admissionregistrationv1.ValidatingWebhook) {
			w.ClientConfig.Service, w.ClientConfig.URL = nil, new("https://evil.example/")
		}},
		"another Service": {"only Service protection-webhook", func(w *admissionregistrationv1.ValidatingWebhook) { w.ClientConfig.Service.Name = "evil" }},
		"a Service of another namespace": {"only Service protection-webhook", func(w *admissionregistrationv1.ValidatingWebhook) {
			w.ClientConfig.Service.Namespace = "default"
		}},
		"all requests": {"only deletions", func(w *admissionregistrationv1.ValidatingWebhook) { w.Rules = everything }},
		"Secrets":      {"only deletions", func(w *admissionregistrationv1.ValidatingWebhook) { w.Rules[0].Resources = []string{"secrets"} }},
		"writes of pods": {"only deletions", func(w *admissionregistrationv1.ValidatingWebhook) {
			w.Rules[0].Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Delete}
		}},
		"commands in pods": {"only deletions", func(w *admissionregistrationv1.ValidatingWebhook) { w.Rules[1].Resources = []string{"pods/exec"} }},
		"all namespaces":   {"needs to recover", func(w *admissionregistrationv1.ValidatingWebhook) { w.NamespaceSelector = nil }},
	} {
		t.Run(what, func(t *testing.T) {
			webhooks, err := deletionflow.Webhooks(webhookpath.Access{CABundle: []byte("a"), Key: []byte("key"), Time: time.Now()})
			if err != nil {
				t.Fatal(err)
			}
			tc.change(&webhooks[0])
			raw, err := json.Marshal(map[string]any{"webhooks": webhooks})
			if err != nil {
				t.Fatal(err)
			}
			impersonation.ExpectConfigurationPatch(t, "protection-webhook", tc.want, validating, deletionflow.Configuration, types.MergePatchType, raw)
		})
	}
	for _, patch := range []string{`{"metadata":{"labels":{"a":"b"}}}`, `{"metadata":{"finalizers":["a.example/b"]}}`} {
		impersonation.ExpectConfigurationPatch(t, "protection-webhook", "labels, annotations, owners and finalizers", validating, deletionflow.Configuration,
			types.MergePatchType, []byte(patch))
	}
}
