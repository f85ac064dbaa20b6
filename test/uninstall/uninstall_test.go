//go:build controlplane

package uninstall

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/breakwater-dev/breakwater/test/controlplane"
	runner "github.com/breakwater-dev/breakwater/test/e2e/kubectl"
)

var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, func(ctx context.Context) (*controlplane.ControlPlane, error) {
		p, err := controlplane.Start(ctx)
		plane = p
		return p, err
	}))
}

// written is what Breakwater writes to objects of users: Deployment web is held, and was not paused
// before; StatefulSet db is held, and had partition 1; StatefulSet cache was held, too, and a person resumed it.
const written = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {admission-webhook-altershield: enabled, policy.breakwater.dev/guarded: "true"}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  labels: {team: a, admission-webhook-altershield.antgroup.com/version: v2, altershield.defense.antgroup.com/suspend: "1", altershield.defense.antgroup.com/defense-status: processed}
  annotations: {admission-webhook-altershield.antgroup.com/attempt: "2", altershield.defense.antgroup.com/hold: '{"attempt":2}'}
spec:
  paused: true
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: db
  namespace: shop
  labels: {admission-webhook-altershield.antgroup.com/version: v1}
  annotations: {altershield.defense.antgroup.com/hold: '{"attempt":1,"former":1}'}
spec:
  replicas: 0
  serviceName: db
  updateStrategy: {rollingUpdate: {partition: 2147483647}}
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: db}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: cache, namespace: shop, annotations: {altershield.defense.antgroup.com/hold: '{"attempt":1,"former":1}'}}
spec:
  replicas: 0
  serviceName: cache
  updateStrategy: {rollingUpdate: {partition: 0}}
  selector: {matchLabels: {app: cache}}
  template:
    metadata: {labels: {app: cache}}
    spec: {containers: [{name: cache, image: cache}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: granted
  namespace: shop
  labels: {altershield.defense.antgroup.com/operate-finished: "true"}
  finalizers: [example.com/theirs, stke.io/podpermission-protection]
spec: {containers: [{name: app, image: app}]}
---
apiVersion: v1
kind: Pod
metadata: {name: deleted, namespace: shop, finalizers: [stke.io/podpermission-protection]}
spec: {containers: [{name: app, image: app}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: generated, namespace: shop, labels: {app.kubernetes.io/managed-by: breakwater}}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: apps/v1
kind: ControllerRevision
metadata: {name: saved, namespace: shop, labels: {app.ops.cloud.alipay.com/history-of: some-uid}}
data: {}
revision: 1
`

// release has an order that is open at the server, so its finalizer waits for the controller.
const release = `
apiVersion: app.ops.cloud.alipay.com/v1alpha1
kind: ChangeWorkload
metadata: {name: web-2, namespace: shop, finalizers: [app.ops.cloud.alipay.com/order]}
spec: {appName: web, attempt: 2, changeWorkloadId: "", countThreshold: 1, createTime: "", createTimeUnix: 0, orderId: "", reversion: v2,
  serviceName: "", waitTimeThreshold: 1, workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web, uid: u}}
`

// clonesets is a kind of config-workloads, which the script cannot resume. CloneSet clones is held.
const clonesets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clonesets.apps.kruise.io}
spec:
  group: apps.kruise.io
  scope: Namespaced
  names: {kind: CloneSet, plural: clonesets, singular: cloneset, listKind: CloneSetList}
  versions:
  - {name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

const heldCloneSet = `
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: clones, namespace: clones, annotations: {altershield.defense.antgroup.com/hold: '{"attempt":1}'}}
spec: {updateStrategy: {paused: true}}
---
apiVersion: app.ops.cloud.alipay.com/v1alpha1
kind: ChangeWorkload
metadata: {name: clones-1, namespace: clones}
spec: {appName: clones, attempt: 1, changeWorkloadId: "", countThreshold: 1, createTime: "", createTimeUnix: 0, orderId: "", reversion: v1,
  serviceName: "", waitTimeThreshold: 1, workloadRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: clones, uid: u}}
`

// sealed are Deployments of which a policy of others denies each change, also one that changes nothing: foreign has
// nothing of Breakwater. Of frozen it denies changes of spec; a StatefulSet of this name is not held.
const sealed = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: foreign, namespace: shop}
spec:
  replicas: 0
  selector: {matchLabels: {app: foreign}}
  template:
    metadata: {labels: {app: foreign}}
    spec: {containers: [{name: app, image: app}]}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: sealed
  namespace: shop
  labels: {admission-webhook-altershield.antgroup.com/version: v1}
  annotations: {altershield.defense.antgroup.com/hold: '{"attempt":1}'}
spec:
  replicas: 0
  paused: true
  selector: {matchLabels: {app: sealed}}
  template:
    metadata: {labels: {app: sealed}}
    spec: {containers: [{name: app, image: app}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: frozen, namespace: shop, annotations: {altershield.defense.antgroup.com/hold: '{"attempt":1}'}}
spec:
  replicas: 0
  paused: true
  selector: {matchLabels: {app: frozen}}
  template:
    metadata: {labels: {app: frozen}}
    spec: {containers: [{name: app, image: app}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: frozen, namespace: shop, annotations: {altershield.defense.antgroup.com/hold: '{"attempt":1,"former":0}'}}
spec:
  replicas: 0
  serviceName: frozen
  selector: {matchLabels: {app: frozen}}
  template:
    metadata: {labels: {app: frozen}}
    spec: {containers: [{name: app, image: app}]}
`

const seal = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: theirs}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [UPDATE], resources: [deployments]}
  validations:
  - {expression: "!(object.metadata.name in ['foreign', 'sealed'])", message: set limits}
  - {expression: "object.metadata.name != 'frozen' || object.spec == oldObject.spec", message: wait until the freeze ends}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: theirs}
spec: {policyName: theirs, validationActions: [Deny]}
`

// Without Breakwater nothing would resume it.
func TestUninstallRemovesNothingWhileAWorkloadOfAnotherKindIsHeld(t *testing.T) {
	kubectl(t, clonesets+"---\n{apiVersion: v1, kind: Namespace, metadata: {name: clones}}\n", "apply", "--server-side", "-f", "-")
	if err := plane.Install(t.Context(), "config/core"); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "", "wait", "--for=condition=Established", "crd", "--all")
	kubectl(t, heldCloneSet, "apply", "--server-side", "-f", "-")
	installed := snapshot(t)
	if preview := uninstall(t, 0); !strings.Contains(preview, "CloneSet clones/clones") {
		t.Errorf("the preview does not name the workload:\n%s", preview)
	}
	for _, args := range [][]string{{"--yes"}, {"--yes", "--resume"}} {
		if out := uninstall(t, 1, args...); !strings.Contains(out, "CloneSet clones/clones") || !strings.Contains(out, "by hand") {
			t.Errorf("uninstall.sh %s does not name the workload and the ways out:\n%s", strings.Join(args, " "), out)
		}
	}
	if diff := cmp.Diff(strings.Split(installed, "\n"), strings.Split(snapshot(t), "\n")); diff != "" {
		t.Errorf("something was removed:\n%s", diff)
	}

	kubectl(t, "", "annotate", "clonesets.apps.kruise.io", "clones", "-n", "clones", "altershield.defense.antgroup.com/hold-")
	uninstall(t, 0, "--yes")
	kubectl(t, "", "delete", "crd", "clonesets.apps.kruise.io")
	kubectl(t, "", "delete", "namespace", "clones", "--wait=false")
}

func TestUninstallLeavesNothingBehind(t *testing.T) {
	kubectl(t, written, "apply", "--server-side", "-f", "-")
	kubectl(t, sealed, "apply", "--server-side", "-f", "-")
	kubectl(t, seal, "apply", "--server-side", "-f", "-")
	awaitSeal(t, true)
	before := snapshot(t)
	// Pod deleted waits for its finalizer, which no process removes.
	kubectl(t, "", "delete", "pod", "deleted", "-n", "shop", "--wait=false")
	for _, part := range []string{"config/core", "config/protection", "config/permission"} {
		if err := plane.Install(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
	kubectl(t, release, "apply", "--server-side", "-f", "-")
	kubectl(t, "", "patch", "changeworkload", "web-2", "-n", "shop", "--subresource", "status", "--type", "merge", "-p",
		`{"status":{"order":{"id":"order-7","openedTime":"2026-01-01T00:00:00Z"}}}`)
	installed := snapshot(t)
	preview := uninstall(t, 0)
	for _, want := range []string{"namespace altershieldoperator-system", "Deployment shop/web", "1 orders stay open", "order order-7 of shop/web-2"} {
		if !strings.Contains(preview, want) {
			t.Errorf("the preview does not contain %q:\n%s", want, preview)
		}
	}
	if out := uninstall(t, 1, "--yes"); !strings.Contains(out, "StatefulSet shop/db") || !strings.Contains(out, "--resume") {
		t.Errorf("held releases are no error that names them:\n%s", out)
	}
	if diff := cmp.Diff(strings.Split(installed, "\n"), strings.Split(snapshot(t), "\n")); diff != "" {
		t.Fatalf("something was removed without --yes, or although releases are held:\n%s", diff)
	}
	if out := uninstall(t, 1, "--yes", "--resume"); !strings.Contains(out, "labels of deployments.apps shop/sealed\n") || !strings.Contains(out, "hold of Deployment shop/frozen\nhold of Deployment shop/sealed\n") || strings.Contains(out, "foreign") {
		t.Errorf("Deployment sealed, and no other, is not named as left:\n%s", out)
	}

	if diff := cmp.Diff(strings.Split(before, "\n"), strings.Split(snapshot(t), "\n")); diff != "" {
		t.Errorf("objects of the cluster differ (- before the installation, + after the removal):\n%s", diff)
	}
	for query, want := range map[string]string{
		"deployment web {.metadata.labels} {.metadata.annotations}":           `{"team":"a"}`,
		"deployment web {.spec.paused}":                                       "",
		"statefulset db {.metadata.labels} {.metadata.annotations}":           "",
		"statefulset db {.spec.updateStrategy.rollingUpdate.partition}":       "1",
		"statefulset cache {.spec.updateStrategy.rollingUpdate.partition}":    "0",
		"statefulset frozen {.metadata.annotations}":                          "",
		"pod granted {.metadata.labels}{.metadata.finalizers}":                `["example.com/theirs"]`,
		"namespace shop {.metadata.labels.policy\\.breakwater\\.dev/guarded}": "",
		"namespace shop {.metadata.labels.admission-webhook-altershield}":     "enabled",
		"controllerrevision saved {.metadata.name}":                           "",
		"poddisruptionbudget generated {.metadata.name}":                      "",
	} {
		words := strings.SplitN(query, " ", 3)
		got := kubectl(t, "", "get", words[0], words[1], "-n", "shop", "--ignore-not-found", "-o", "jsonpath="+words[2])
		if got = strings.TrimSpace(got); got != want && !strings.HasPrefix(got, want+` {"deployment.kubernetes.io/revision"`) {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
	if pods := kubectl(t, "", "get", "pods", "-n", "shop", "-o", "name"); strings.Contains(pods, "pod/deleted") {
		t.Errorf("a deleted pod is still there: %s", pods)
	}
	// Uninstalling can be repeated.
	kubectl(t, seal, "delete", "-f", "-")
	awaitSeal(t, false)
	uninstall(t, 0, "--yes", "--resume")
	for _, name := range []string{"sealed", "frozen"} {
		if got := kubectl(t, "", "get", "deployment", name, "-n", "shop", "-o", "jsonpath={.metadata.labels}{.spec.paused}{.metadata.annotations.altershield\\.defense\\.antgroup\\.com/hold}"); got != "" {
			t.Errorf("labels, pause and hold of Deployment %s: %s", name, got)
		}
	}
}

// awaitSeal waits until the API server evaluates the policy, or no longer does.
func awaitSeal(t *testing.T, denies bool) {
	t.Helper()
	var out []byte
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		var err error
		out, err = exec.CommandContext(ctx, "kubectl", "annotate", "deployment", "foreign", "-n", "shop", "a=b", "--dry-run=server").CombinedOutput()
		return denies == (err != nil && strings.Contains(string(out), "set limits")), nil
	}); err != nil {
		t.Fatalf("the policy denies changes: %t, want %t: %v\n%s", !denies, denies, err, out)
	}
}

// snapshot lists the cluster-scoped objects that an installation may leave, and the namespaces of all
// Leases and bindings.
func snapshot(t *testing.T) string {
	t.Helper()
	return kubectl(t, "", "get", "crds,clusterroles,clusterrolebindings,validatingwebhookconfigurations,mutatingwebhookconfigurations,"+
		"validatingadmissionpolicies,validatingadmissionpolicybindings,flowschemas,prioritylevelconfigurations,priorityclasses,apiservices", "-o", "name") +
		kubectl(t, "", "get", "rolebindings,roles,leases", "-A", "-o", "custom-columns=:.kind,:.metadata.namespace,:.metadata.name")
}

// deadline is shorter than the script waits for the deletion of one kind.
const deadline = 170 * time.Second

func uninstall(t *testing.T, code int, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	command := exec.CommandContext(ctx, "../../hack/uninstall.sh", args...)
	// A killed script would leave its kubectl behind.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	out, err := command.CombinedOutput()
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	}
	if got != code || (err != nil && exit == nil) {
		t.Fatalf("uninstall.sh %s: %v, want exit code %d\n%s", strings.Join(args, " "), err, code, out)
	}
	return string(out)
}

// kubectl runs kubectl with the manifest as its input, and returns its stdout.
var kubectl = runner.Kubectl{}.Require
