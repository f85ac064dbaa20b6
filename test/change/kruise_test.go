//go:build controlplane

package change

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// cloneSet and advancedStatefulSet are kinds of OpenKruise.
var (
	cloneSet = workload.Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"},
		Resource:         "clonesets", Revisions: workload.ControllerRevisions,
		Hold:   workload.Field{Path: []string{"spec", "updateStrategy", "paused"}, Held: true},
		Counts: workload.CountReplicas,
	}
	advancedStatefulSet = workload.Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "StatefulSet"},
		Resource:         "statefulsets", Revisions: workload.ControllerRevisions,
		Hold:   workload.Field{Path: []string{"spec", "updateStrategy", "rollingUpdate", "paused"}, Held: true},
		Counts: workload.CountReplicas,
	}
)

// kruiseKinds configures both.
var kruiseKinds = configured("apps.kruise.io", []string{"clonesets", "statefulsets"}, `
- apiVersion: apps.kruise.io/v1alpha1
  kind: CloneSet
  revisions: ControllerRevision
  pause: spec.updateStrategy.paused
- apiVersion: apps.kruise.io/v1beta1
  kind: StatefulSet
  revisions: ControllerRevision
  pause: spec.updateStrategy.rollingUpdate.paused`)

// kruiseObject is a workload of OpenKruise of 6 pods, with fields of its spec.
const kruiseObject = `
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  %s
  template:
    metadata: {labels: {app: web}, annotations: {test.breakwater.dev/release: v1}}
    spec:
      tolerations: [{key: kwok.x-k8s.io/node, operator: Exists}]
      nodeSelector: {type: kwok}
      containers:
      - {name: c, image: "busybox:1", tty: false, command: [], resources: {limits: {cpu: 1000m, memory: 1024Mi}}}
`

// OpenKruise's webhooks set defaults in the template after ours computed its version, so
// the API server must call ours again: pods are found by the template that is stored.
func TestTheKindsOfTheRealOpenKruiseAreReleasedHeldRepairedAndRolledBack(t *testing.T) {
	f := newFixture(t)
	user := f.runKruise(t)
	for name, tc := range map[string]struct {
		kind workload.Kind
		spec string
	}{
		"CloneSet":             {cloneSet, "updateStrategy: {type: ReCreate, maxUnavailable: 1}\n  minReadySeconds: 3"},
		"Advanced StatefulSet": {advancedStatefulSet, "updateStrategy: {rollingUpdate: {minReadySeconds: 3}}\n  podManagementPolicy: Parallel"},
	} {
		t.Run(name, func(t *testing.T) {
			newFixture(t).create(t, tc.kind, object(t, fmt.Sprintf(kruiseObject, tc.spec))).checkReleases(t, user)
		})
	}
}

// runKruise installs OpenKruise, runs its manager, configures its kinds, and returns the
// user of the manager.
func (f fixture) runKruise(t *testing.T) string {
	t.Helper()
	kruise, err := plane.Build(t.Context(), "kruise")
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, "", "create", "namespace", "kruise-system")
	kubectl(t, "", "apply", "--server-side", "-f", filepath.Join(kruise.Module, "config", "crd", "bases"))
	kubectl(t, kruiseWebhooks(t, filepath.Join(kruise.Module, "config", "webhook", "manifests.yaml")), "apply", "-f", "-")
	f.awaitKind(t, cloneSet)
	f.awaitKind(t, advancedStatefulSet)
	kubeconfig, err := plane.KubeconfigOf("kruise-system", "kruise-manager")
	if err != nil {
		t.Fatal(err)
	}
	// The API server calls its webhooks at an address of this machine.
	environment := []string{
		"POD_NAMESPACE=kruise-system", "WEBHOOK_HOST=localhost", "WEBHOOK_PORT=" + freePort(t),
		"WEBHOOK_CERT_DIR=" + filepath.Join(t.TempDir(), "certs"),
	}
	err = plane.RunProgram(filepath.Join(kruise.Binaries, "kruise-manager"), environment, "--kubeconfig", kubeconfig,
		"--enable-leader-election=false", "--enable-pprof=false", "--metrics-addr=127.0.0.1:"+freePort(t), "--health-probe-addr=127.0.0.1:"+freePort(t),
		"--rest-config-qps=200", "--rest-config-burst=400", "--feature-gates=PodWebhook=false,KruiseDaemon=false")
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, kruiseKinds, "apply", "--server-side", "--force-conflicts", "-f", "-")
	f.awaitWebhook(t, "vcloneset.apps.kruise.io.kb.io")
	f.awaitWebhook(t, "vstatefulset.apps.kruise.io.kb.io")
	await(t, "OpenKruise has configured its webhooks", func(ctx context.Context) error {
		config, err := f.Kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, "kruise-mutating-webhook-configuration", metav1.GetOptions{})
		if err == nil && (len(config.Webhooks) == 0 || len(config.Webhooks[0].ClientConfig.CABundle) == 0) {
			err = fmt.Errorf("%d webhooks", len(config.Webhooks))
		}
		return err
	})
	return "system:serviceaccount:kruise-system:kruise-manager"
}

// kruiseWebhooks returns the configurations of OpenKruise with the webhooks of the two
// kinds only.
func kruiseWebhooks(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	documents := strings.Split(string(raw), "\n---\n")
	for _, document := range documents {
		switch {
		case strings.Contains(document, "kind: MutatingWebhookConfiguration"):
			err = yaml.Unmarshal([]byte(document), &mutating)
		case strings.Contains(document, "kind: ValidatingWebhookConfiguration"):
			err = yaml.Unmarshal([]byte(document), &validating)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	mutating.Webhooks = slices.DeleteFunc(mutating.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool {
		return w.Name != "mcloneset.kb.io" && w.Name != "mstatefulset.kb.io"
	})
	validating.Webhooks = slices.DeleteFunc(validating.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
		return w.Name != "vcloneset.kb.io" && w.Name != "vstatefulset.kb.io"
	})
	if len(mutating.Webhooks) != 2 || len(validating.Webhooks) != 2 {
		t.Fatalf("%s has %d and %d webhooks of the kinds", file, len(mutating.Webhooks), len(validating.Webhooks))
	}
	mutating.Name, validating.Name = "kruise-"+mutating.Name, "kruise-"+validating.Name
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{mutating, validating}})
	if err != nil {
		t.Fatal(err)
	}
	return string(list)
}
