//go:build controlplane

package attack

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	admission "github.com/breakwater-dev/breakwater/admission/change"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/e2e/impersonation"
)

// web is a Deployment whose pods are Pending.
const web = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1, selector: {matchLabels: {app: web}},
 template: {metadata: {labels: {app: web}}, spec: {nodeSelector: {no: node}, containers: [{name: app, image: busybox}]}}}}`

// A saved template counts as a version that succeeded. So a planted one would be admitted
// although the workload is suspended.
func TestASavedTemplateCannotBePlanted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const only = "only Breakwater writes ControllerRevisions"
	planted := `{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: NAME, labels: {LABEL: u}}, revision: 1, data: {spec: {template: {}}}}`
	apply := func(name, label string) string {
		return strings.NewReplacer("NAME", name, "LABEL", label).Replace(planted)
	}
	f.save(t, f.namespace)
	kubectl(t, apply("other", "app"), "apply", "-n", f.namespace, "-f", "-")
	impersonation.ExpectBy(t, attacker, only, apply("planted", "app.ops.cloud.alipay.com/history-of"), "create", "-n", f.namespace, "-f", "-")
	for _, tc := range []struct{ name, patch, want string }{
		{"saved", `{"revision":2}`, only},
		{"saved", `{"metadata":{"annotations":{"admission-webhook-altershield.antgroup.com/version":"b"}}}`, only},
		{"saved", `{"metadata":{"labels":{"app.ops.cloud.alipay.com/history-of":"v"}}}`, only},
		{"saved", `{"metadata":{"labels":{"app.ops.cloud.alipay.com/history-of":null}}}`, only},
		{"saved", `{"metadata":{"finalizers":["a.example/b"]}}`, ""},
		{"other", `{"metadata":{"labels":{"app.ops.cloud.alipay.com/history-of":"v"}}}`, only},
		{"other", `{"revision":2}`, ""},
	} {
		impersonation.ExpectBy(t, attacker, tc.want, "", "patch", "-n", f.namespace, "controllerrevision", tc.name, "--type", "merge", "-p", tc.patch)
	}
}

// Pods of an edited ReplicaSet would run an unjudged template, even while the Deployment is
// suspended.
func TestTheTemplateOfAReplicaSetCannotBeChanged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	elsewhere := f.newNamespace(t, nil)
	for _, namespace := range []string{f.namespace, elsewhere} {
		kubectl(t, web, "apply", "-n", namespace, "-f", "-")
		kubectl(t, "", "wait", "-n", namespace, "--for=create", "--timeout=60s", "replicaset", "-l", "app=web")
	}
	set := func(namespace string) string {
		return strings.TrimSpace(kubectl(t, "", "get", "replicaset", "-n", namespace, "-l", "app=web", "-o", "name"))
	}
	image := `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"evil"}]}}}}`
	patch := func(by, want, namespace, body string) {
		t.Helper()
		impersonation.ExpectBy(t, by, want, "", "patch", "-n", namespace, set(namespace), "--type", "strategic", "-p", body)
	}
	patch(attacker, "Change Deployment web instead", f.namespace, image)
	// The Deployment would adopt it again.
	kubectl(t, `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: released, labels: {app: released}}, spec: {replicas: 0, selector: {matchLabels: {app: web, a: b}},
 template: {metadata: {labels: {app: web, a: b}}, spec: {containers: [{name: app, image: busybox}]}}}}`, "apply", "-n", f.namespace, "-f", "-")
	impersonation.ExpectBy(t, attacker, "Create a Deployment instead", "", "patch", "-n", f.namespace, "replicaset", "released", "--type", "strategic", "-p", image)
	patch(attacker, "", f.namespace, `{"metadata":{"annotations":{"a":"b"}}}`)
	patch(attacker, "", elsewhere, image)

	// The Deployment adopts the ReplicaSet again when the user removes the other controller.
	kubectl(t, "", "patch", "-n", f.namespace, "deployment", "web", "--type", "merge", "-p", `{"spec":{"paused":true}}`)
	f.argoWorkflowsEditor(t, attacker)
	kubectl(t, "", "patch", "-n", f.namespace, set(f.namespace), "--type", "merge", "-p", `{"metadata":{"ownerReferences":[`+workflow+`]}}`, "--as", attacker)
	patch(attacker, "Change Workflow web instead", f.namespace, image)
	kubectl(t, "", "create", "rolebinding", "bypass", "-n", f.namespace, "--clusterrole=breakwater-bypass", "--user="+attacker)
	patch(attacker, "", f.namespace, image)
}

// A Deployment adopts each ReplicaSet that matches its selector, also while it is suspended.
func TestAReplicaSetCannotBePlanted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	elsewhere := f.newNamespace(t, nil)
	kubectl(t, web, "apply", "-n", f.namespace, "-f", "-")
	kubectl(t, "", "wait", "-n", f.namespace, "--for=create", "--timeout=60s", "replicaset", "-l", "app=web")
	owned := func(apiVersion, kind string) string {
		return strings.NewReplacer("VERSION", apiVersion, "KIND", kind).Replace(planted)
	}
	bare := strings.Replace(planted, ", ownerReferences: ["+owner+"]", "", 1)
	const denied = "this ReplicaSet may not be created"
	create := func(by, want, namespace, manifest string) {
		t.Helper()
		impersonation.ExpectBy(t, by, want, manifest, "create", "-n", namespace, "-f", "-")
	}
	create(attacker, denied, f.namespace, bare)
	create(attacker, denied, f.namespace, owned("apps/v1", "Deployment"))
	create(attacker, denied, f.namespace, owned("argoproj.io/v1alpha1", "Rollout"))
	create(attacker, "", elsewhere, bare)
	set := strings.TrimSpace(kubectl(t, "", "get", "replicaset", "-n", f.namespace, "-l", "app=web", "-o", "name"))
	scale := func(by, want string, flags ...string) {
		t.Helper()
		impersonation.ExpectBy(t, by, want, "", append([]string{"patch", "-n", f.namespace, set, "--type", "merge", "-p", `{"spec":{"replicas":5}}`}, flags...)...)
	}
	const subresource = "--subresource=scale"
	const replicas = "spec.replicas of this ReplicaSet may not be changed"
	scale(attacker, replicas)
	scale(attacker, replicas, subresource)
	impersonation.ExpectBy(t, attacker, "", "", "label", "-n", f.namespace, set, "a=b")

	// The controllers of workloads create and scale them.
	f.controllers(t)
	create("argo", "", f.namespace, owned("argoproj.io/v1alpha1", "Rollout"))
	create("argo", "", f.namespace, owned("argoproj.io/v1alpha1", "Experiment"))
	create("argo", denied, f.namespace, owned("apps/v1", "Deployment"))
	create("kruise", "", f.namespace, owned("apps/v1", "Deployment"))
	scale("kruise", "", subresource)

	// Knative's roles give a user the finalizers of its kinds. The user could delete a Revision but
	// not its ReplicaSet, which a Deployment would adopt.
	f.knativeEditor(t, "editor")
	create("editor", denied, f.namespace, owned("serving.knative.dev/v1", "Revision"))
	create("editor", denied, f.namespace, owned("eventing.knative.dev/v1", "Broker"))

	// Argo Workflows' role for users who edit a namespace includes the finalizers of its kinds.
	f.argoWorkflowsEditor(t, attacker)
	create(attacker, denied, f.namespace, owned("argoproj.io/v1alpha1", "Workflow"))
	create(attacker, denied, f.namespace, owned("argoproj.io/v1alpha1", "Rollout"))
	taken := `{"metadata":{"ownerReferences":[` + workflow + `]},"spec":{"replicas":5}}`
	impersonation.ExpectBy(t, attacker, replicas, "", "patch", "-n", f.namespace, set, "--type", "merge", "-p", taken)

	kubectl(t, "", "create", "rolebinding", "bypass", "-n", f.namespace, "--clusterrole=breakwater-bypass", "--user="+attacker)
	create(attacker, "", f.namespace, bare)
	scale(attacker, "", subresource)

	// A Deployment still creates and scales its own.
	kubectl(t, "", "scale", "-n", f.namespace, "deployment", "web", "--replicas=2")
	kubectl(t, "", "wait", "-n", f.namespace, "--for=jsonpath={.spec.replicas}=2", "--timeout=60s", set)
}

// The pods of a ReplicaSet are judged for the release in its annotations. If an old ReplicaSet had the
// release of a new template, its pods would be judged instead of those of the new one.
func TestTheReleaseOfAReplicaSetCannotBeChanged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	elsewhere := f.newNamespace(t, nil)
	useRollouts(t)
	kubectl(t, strings.Replace(marked, "apps/v1, kind: Deployment", "argoproj.io/v1alpha1, kind: Rollout", 1), "apply", "-n", f.namespace, "-f", "-")
	rollout := kubectl(t, "", "get", "-n", f.namespace, "rollouts.argoproj.io", "marked", "-o", "jsonpath={.metadata.uid}")
	kubectl(t, strings.NewReplacer("VERSION", "argoproj.io/v1alpha1", "KIND", "Rollout", "name: web, uid: u", "name: marked, uid: "+rollout).Replace(planted),
		"create", "-n", f.namespace, "-f", "-")
	for _, namespace := range []string{f.namespace, elsewhere} {
		kubectl(t, web, "apply", "-n", namespace, "-f", "-")
		kubectl(t, "", "wait", "-n", namespace, "--for=create", "--timeout=60s", "replicaset", "-l", "app=web,pod-template-hash")
	}
	set := func(namespace string) string {
		return strings.TrimSpace(kubectl(t, "", "get", "replicaset", "-n", namespace, "-l", "app=web,pod-template-hash", "-o", "name"))
	}
	const denied = "the annotations version and attempt of this ReplicaSet may not be changed"
	annotate := func(by, want, namespace, set string, annotations ...string) {
		t.Helper()
		impersonation.ExpectBy(t, by, want, "", append([]string{"annotate", "--overwrite", "-n", namespace, set}, annotations...)...)
	}
	const version, attempt = v1alpha1.VersionKey, v1alpha1.AttemptAnnotation
	former := set(f.namespace)
	kubectl(t, "", "wait", "-n", f.namespace, "--for=jsonpath={.metadata.annotations."+strings.ReplaceAll(attempt, ".", `\.`)+"}=1", "--timeout=60s", former)
	annotate(attacker, denied, f.namespace, former, version+"=b", attempt+"=2")
	annotate(attacker, denied, f.namespace, former, version+"=b")
	annotate(attacker, denied, f.namespace, former, attempt+"=2")
	annotate(attacker, denied, f.namespace, former, version+"-")
	annotate(attacker, "breakwater-bypass", f.namespace, former, attempt+"-")
	annotate(attacker, denied, f.namespace, "replicaset/planted", version+"=b", attempt+"=2")
	annotate(attacker, "", f.namespace, former, "a=b")
	annotate(attacker, "", elsewhere, set(elsewhere), version+"=b", attempt+"=2")

	// The controllers of workloads copy the annotations of their workloads.
	f.controllers(t)
	annotate("argo", "", f.namespace, "replicaset/planted", version+"=b", attempt+"=2")
	annotate("argo", denied, f.namespace, former, version+"=b", attempt+"=2")
	// Argo Rollouts writes the anti-affinity of its strategies to existing ReplicaSets.
	const affinity = `{"spec":{"template":{"spec":{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
 {"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"a":"b"}}}]}}}}}}`
	for set, want := range map[string]string{"replicaset/planted": "", former: "Change Deployment web instead"} {
		impersonation.ExpectBy(t, "argo", want, "", "patch", "-n", f.namespace, set, "--type", "merge", "-p", affinity)
	}
	annotate("kruise", "", f.namespace, former, version+"=b", attempt+"=2")
	for n, image := range []string{"other", "busybox"} {
		kubectl(t, "", "set", "image", "-n", f.namespace, "deployment/web", "app="+image)
		kubectl(t, "", "wait", "-n", f.namespace, fmt.Sprintf("--for=jsonpath={.status.observedGeneration}=%d", n+2), "--timeout=60s", "deployment/web")
	}
	kubectl(t, "", "wait", "-n", f.namespace, "--for=jsonpath={.metadata.annotations."+strings.ReplaceAll(attempt, ".", `\.`)+"}=3", "--timeout=60s", former)

	kubectl(t, "", "create", "rolebinding", "bypass", "-n", f.namespace, "--clusterrole=breakwater-bypass", "--user="+attacker)
	annotate(attacker, "", f.namespace, former, version+"=b", attempt+"=2")
}

// controllers creates two users: argo may update the finalizers of Rollouts and Experiments, and kruise the status of Deployments.
func (f fixture) controllers(t *testing.T) {
	t.Helper()
	for user, rule := range map[string]string{
		"argo":   `{apiGroups: [argoproj.io], resources: [rollouts/finalizers, experiments/finalizers], verbs: [update]}`,
		"kruise": `{apiGroups: [apps], resources: [deployments/status], verbs: [update]}`,
	} {
		kubectl(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: `+user+`}, rules: [`+rule+`]}`, "apply", "-n", f.namespace, "-f", "-")
		kubectl(t, "", "create", "rolebinding", user, "-n", f.namespace, "--role="+user, "--user="+user)
		kubectl(t, "", "create", "rolebinding", user+"-edits", "-n", f.namespace, "--clusterrole=edit", "--user="+user)
	}
}

// argoWorkflowsEditor gives a user the roles of Kubernetes and of Argo Workflows (argo-aggregate-to-edit) for
// those who edit a namespace.
func (f fixture) argoWorkflowsEditor(t *testing.T, user string) {
	t.Helper()
	kubectl(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: argo-edit}, rules: [
 {apiGroups: [argoproj.io], resources: [workflows, workflows/finalizers, workfloweventbindings, workfloweventbindings/finalizers, workflowtemplates,
 workflowtemplates/finalizers, cronworkflows, cronworkflows/finalizers, clusterworkflowtemplates, clusterworkflowtemplates/finalizers],
 verbs: [create, delete, deletecollection, get, list, patch, update, watch]}]}`, "apply", "-n", f.namespace, "-f", "-")
	kubectl(t, "", "create", "rolebinding", user+"-argo", "-n", f.namespace, "--role=argo-edit", "--user="+user)
}

// workflow is a controller that users with the role of Argo Workflows may finalize.
const workflow = `{"apiVersion":"argoproj.io/v1alpha1","kind":"Workflow","name":"web","uid":"u","controller":true}`

// planted is a ReplicaSet with a controller.
const (
	owner   = `{apiVersion: VERSION, kind: KIND, name: web, uid: u, controller: true}`
	planted = `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: planted, labels: {app: web}, ownerReferences: [` + owner + `]}, spec: {replicas: 3,
 selector: {matchLabels: {app: web, a: b}}, template: {metadata: {labels: {app: web, a: b}}, spec: {nodeSelector: {no: node}, containers: [{name: app, image: evil}]}}}}`
)

// The garbage collector deletes a workload with its owner, also while it is suspended. The user
// would create it again, and it would not be suspended.
func TestASuspensionIsNotLeftByAnOwnerThatIsPlanted(t *testing.T) {
	f := newFixture(t)
	f.SetConfig(t, v1alpha1.ConfigBypass, string(v1alpha1.BypassAuthorized))
	kubectl(t, controllerWorkloads, "apply", "-n", f.namespace, "-f", "-")
	owners := func(name string) string {
		kubectl(t, "", "create", "configmap", name, "-n", f.namespace)
		return `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"` + name + `","uid":"` +
			kubectl(t, "", "get", "configmap", name, "-n", f.namespace, "-o", "jsonpath={.metadata.uid}") + `"}]}}`
	}
	patch := func(workload, body string, flags ...string) []string {
		return append([]string{"patch", "-n", f.namespace, workload, "--type", "merge", "-p", body, "--as", attacker}, flags...)
	}
	f.judgeRollouts(t)
	former, other := owners("former"), owners("other")
	workloads := []string{"deployment/web", "statefulset/set", "daemonset/daemon", "rollouts.argoproj.io/web"}
	for _, w := range workloads {
		kubectl(t, "", patch(w, former)...)
		kubectl(t, "", "label", "-n", f.namespace, w, v1alpha1.SuspendLabel+"=1")
	}
	for _, w := range workloads {
		awaitDenial(t, `is suspended: an added or changed owner (metadata.ownerReferences) requires the verb "bypass"`, patch(w, other, "--dry-run=server")...)
		kubectl(t, "", patch(w, former, "--dry-run=server")...)
		kubectl(t, "", patch(w, `{"metadata":{"ownerReferences":null}}`, "--dry-run=server")...)
	}
	// The owner that the workload had before deletes it, as without Breakwater.
	kubectl(t, "", "delete", "configmap", "former", "-n", f.namespace, "--as", attacker)
	kubectl(t, "", append([]string{"wait", "--for=delete", "--timeout=60s", "-n", f.namespace}, workloads...)...)

	kubectl(t, web, "create", "-n", f.namespace, "-f", "-")
	kubectl(t, "", "label", "-n", f.namespace, "deployment/web", v1alpha1.SuspendLabel+"=1")
	kubectl(t, "", "create", "rolebinding", "bypass", "-n", f.namespace, "--clusterrole=breakwater-bypass", "--user="+attacker)
	err := wait.PollUntilContextTimeout(t.Context(), 250*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return exec.CommandContext(ctx, "kubectl", patch("deployment/web", other)...).Run() == nil, nil
	})
	if err != nil {
		t.Error("a user with the verb bypass may not add an owner")
	}
}

// judgeRollouts configures Argo's Rollout as a kind of workload, and creates one that the
// attacker may change.
func (f fixture) judgeRollouts(t *testing.T) {
	t.Helper()
	configure := func(ctx context.Context, kinds string) error {
		return exec.CommandContext(ctx, "kubectl", "patch", "configmap", "config-workloads", "-n", v1alpha1.SystemNamespace, "--type", "merge",
			"-p", `{"data":{"kinds":`+kinds+`}}`).Run()
	}
	useRollouts(t)
	configs := f.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	t.Cleanup(func() {
		err := configure(context.Background(), "null")
		// The next tests have a kind without webhooks.
		err = errors.Join(err, wait.PollUntilContextTimeout(context.Background(), 250*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			generated, err := configs.Get(ctx, admission.Generated, metav1.GetOptions{})
			return err == nil && len(generated.Webhooks) == 0, err
		}))
		if err != nil {
			t.Error(err)
		}
	})
	if err := configure(t.Context(), `"[{apiVersion: argoproj.io/v1alpha1, kind: Rollout, revisions: ReplicaSet}]"`); err != nil {
		t.Fatal(err)
	}
	const configuration = "validatingwebhookconfiguration/" + admission.Generated
	kubectl(t, "", "wait", "--for=create", "--timeout=60s", configuration)
	kubectl(t, "", "wait", "--for=jsonpath={.webhooks[?(@.name=='vrollout.argoproj.io.kb.io')].clientConfig.caBundle}", "--timeout=60s", configuration)
	kubectl(t, `{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: web}, spec: {replicas: 1, selector: {matchLabels: {app: rollout}},
 template: {metadata: {labels: {app: rollout}}, spec: {containers: [{name: app, image: busybox}]}}}}`, "apply", "-n", f.namespace, "-f", "-")
	kubectl(t, "", "create", "role", "rollouts", "-n", f.namespace, "--verb=get,list,patch", "--resource=rollouts.argoproj.io")
	kubectl(t, "", "create", "rolebinding", "rollouts", "-n", f.namespace, "--role=rollouts", "--user="+attacker)
}

// awaitDenial repeats a command of kubectl until the denial contains want.
func awaitDenial(t *testing.T, want string, args ...string) {
	t.Helper()
	var last string
	err := wait.PollUntilContextTimeout(t.Context(), 250*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		out, err := exec.CommandContext(ctx, "kubectl", args...).CombinedOutput()
		last = fmt.Sprintf("%v: %s", err, out)
		return err != nil && strings.Contains(string(out), want), nil
	})
	if err != nil {
		t.Errorf("kubectl %s: %s; want %q", strings.Join(args, " "), last, want)
	}
}

// The change is not denied, because some controllers update pods in place.
func TestAnImageThatIsChangedInAPodIsReported(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kubectl(t, `{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {nodeSelector: {no: node}, containers: [{name: app, image: busybox}]}}`,
		"apply", "-n", f.namespace, "-f", "-")
	out, err := exec.CommandContext(t.Context(), "kubectl", "set", "image", "-n", f.namespace, "pod/web", "app=evil", "--as", attacker).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "the image of a running pod was changed") {
		t.Errorf("%v: %s, want a warning", err, out)
	}
}

// The record of a rollback names who requested it.
func TestARollbackRequestNamesOnlyItsUser(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kubectl(t, web, "apply", "-n", f.namespace, "-f", "-")
	const other = "must begin with"
	for request, want := range map[string]string{
		`{"user":"mallory","attempt":1}`:                    "",
		`{"user":"jane","attempt":1}`:                       other,
		`{"attempt":1}`:                                     other,
		`{"user":"mallory","attempt":1,"user":"jane"}`:      other,
		`{"user":"mallory","attempt":1,"User":"jane"}`:      other,
		`{"user":"mallory","attempt":1,"\u0075ser":"jane"}`: other,
		`{"user":"mallory","attempt":1,"uſer":"jane"}`:      other,
		`{"user":"mallory2","attempt":1}`:                   other,
	} {
		impersonation.ExpectBy(t, attacker, want, "", "annotate", "--overwrite", "-n", f.namespace, "deployment", "web",
			"altershield.defense.antgroup.com/rollback-request="+request)
	}
	impersonation.Expect(t, "openapi", "", "patch", "-n", f.namespace, "deployment", "web", "--type", "merge",
		"-p", `{"metadata":{"annotations":{"altershield.defense.antgroup.com/rollback-request":"{\"user\":\"jane\",\"attempt\":1}"}}}`)
}

// A release that is a rollback by Breakwater is not judged by metrics.
func TestTheRecordOfARollbackIsWrittenOnlyByTheController(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const record = "altershield.defense.antgroup.com/rollback"
	write := func(by, manifest, want string, args ...string) {
		t.Helper()
		args = append(args, "-n", f.namespace, "--as", by, "--as-group=breakwater:controlplane",
			"-o", `jsonpath={.metadata.annotations['altershield\.defense\.antgroup\.com/rollback']}`)
		if got := kubectl(t, manifest, args...); got != want {
			t.Errorf("after kubectl %s by %s the record is %q, want %q", strings.Join(args, " "), by, got, want)
		}
	}
	patch := func(by, annotation, spec, want string) {
		t.Helper()
		write(by, "", want, "patch", "deployment", "web", "--type", "strategic",
			"-p", `{"metadata":{"annotations":{"`+record+`":`+annotation+`}}`+spec+`}`)
	}
	const second = `"{\"attempt\":2}"`
	write(attacker, strings.Replace(web, "name: web}", `name: web, annotations: {`+record+`: '{"attempt":1}'}}`, 1), "", "create", "-f", "-")
	patch(attacker, second, "", "")
	patch(attacker, second, `,"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}`, "")
	patch("system:serviceaccount:altershieldoperator-system:openapi", second, "", "")
	patch("system:serviceaccount:altershieldoperator-system:controller", second, "", `{"attempt":2}`)
	patch(attacker, "null", "", `{"attempt":2}`)
}

// knativeEditor is a user with the roles of Kubernetes and of Knative Serving and Eventing for those
// who edit a namespace (knative-eventing-namespaced-edit has the groups of Eventing).
func (f fixture) knativeEditor(t *testing.T, user string) {
	t.Helper()
	kubectl(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: knative-edit}, rules: [
 {apiGroups: [serving.knative.dev, eventing.knative.dev, messaging.knative.dev, sources.knative.dev, flows.knative.dev, bindings.knative.dev,
 sinks.knative.dev], resources: ["*"], verbs: [create, update, patch, delete]}]}`, "apply", "-n", f.namespace, "-f", "-")
	kubectl(t, "", "create", "rolebinding", user+"-knative", "-n", f.namespace, "--role=knative-edit", "--user="+user)
	kubectl(t, "", "create", "rolebinding", user+"-edits", "-n", f.namespace, "--clusterrole=edit", "--user="+user)
}

// The Deployment of a Knative Service is not judged beside its Service. A user who plants a Revision
// as the owner of another Deployment would leave the guard.
func TestADeploymentOfAKnativeServiceCannotBePlanted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	elsewhere := f.newNamespace(t, nil)
	f.knativeEditor(t, "editor")
	const denied = "only Knative Serving may write this object"
	const labels = `labels: {serving.knative.dev/service: web, serving.knative.dev/serviceUID: u}`
	deployment := func(name, metadata string) string {
		return strings.NewReplacer("NAME", name, "METADATA", metadata).Replace(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: NAME, METADATA},
 spec: {replicas: 0, selector: {matchLabels: {app: NAME}}, template: {metadata: {labels: {app: NAME}}, spec: {containers: [{name: app, image: evil}]}}}}`)
	}
	revision := `ownerReferences: [` + strings.NewReplacer("VERSION", "serving.knative.dev/v1", "KIND", "Revision").Replace(owner) + `]`
	create := func(by, want, namespace, manifest string) {
		t.Helper()
		impersonation.ExpectBy(t, by, want, manifest, "create", "-n", namespace, "--dry-run=server", "-f", "-")
	}
	create("editor", denied, f.namespace, deployment("owned", revision))
	create("editor", denied, f.namespace, deployment("owned", labels+", "+revision))
	create("editor", "", f.namespace, deployment("labeled", labels))
	create("editor", "", f.namespace, deployment("web", "labels: {}"))
	impersonation.ExpectBy(t, attacker, "", deployment("owned", revision), "create", "-n", elsewhere, "--dry-run=server", "-f", "-")

	// Serving's controller may update the finalizers of both kinds.
	kubectl(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: serving}, rules: [
 {apiGroups: [apps], resources: [deployments, deployments/finalizers], verbs: [get, create, update, patch]},
 {apiGroups: [serving.knative.dev], resources: ["*", "*/finalizers"], verbs: [create, update, patch]}]}`, "apply", "-n", f.namespace, "-f", "-")
	kubectl(t, "", "create", "rolebinding", "serving", "-n", f.namespace, "--role=serving", "--user=serving")
	create("serving", "", f.namespace, deployment("owned", labels+", "+revision))

	kubectl(t, deployment("web", "labels: {}"), "create", "-n", f.namespace, "-f", "-")
	kubectl(t, deployment("released", labels+", "+revision), "create", "-n", f.namespace, "-f", "-", "--as", "serving", "--validate=false")
	patch := func(by, want, name, body string) {
		t.Helper()
		impersonation.ExpectBy(t, by, want, "", "patch", "-n", f.namespace, "deployment", name, "--type", "strategic", "--dry-run=server", "-p", body)
	}
	image := `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"worse"}]}}}}`
	planted := `{"metadata":{"ownerReferences":[{"apiVersion":"serving.knative.dev/v1","kind":"Revision","name":"r","uid":"u","controller":true}]}}`
	patch("editor", denied, "web", planted)
	patch("editor", "", "web", image)
	patch("editor", denied, "released", image)
	patch("editor", denied, "released", `{"metadata":{"ownerReferences":null}}`)
	patch("editor", denied, "released", `{"metadata":{"labels":{"serving.knative.dev/serviceUID":"other"}}}`)
	patch("editor", denied, "released", `{"metadata":{"annotations":{"`+v1alpha1.VersionKey+`":"other"}}}`)
	patch("editor", "", "released", `{"metadata":{"labels":{"a":"b"}},"spec":{"replicas":2}}`)
	patch("serving", "", "released", image)
}
