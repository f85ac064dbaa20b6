//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// workloadKind describes a kind of workload for kubectl.
type workloadKind struct {
	apiVersion, kind string
	// spec holds the fields of spec other than selector and template, as JSON.
	spec string
	// stops and resumes are merge patches that pause and resume the rollout.
	stops, resumes string
	// admitted are merge patches of spec that are admitted while suspended.
	admitted []string
	// scales: the kind has replicas.
	scales bool
}

func (k workloadKind) lowerKind() string { return strings.ToLower(k.kind) }

// webhookName returns the name of the webhook that denies.
func (k workloadKind) webhookName() string {
	if group, _, _ := strings.Cut(k.apiVersion, "/"); group != "apps" {
		return "v" + k.lowerKind() + "." + group + ".kb.io"
	}
	return "v" + k.lowerKind() + ".kb.io"
}

func statefulSets() workloadKind {
	return workloadKind{
		apiVersion: "apps/v1", kind: "StatefulSet", spec: `"serviceName":"db","replicas":1`, scales: true,
		stops:   `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":2147483647}}}}`,
		resumes: `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`,
		admitted: []string{
			`{"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}}}}`, `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`,
			`{"spec":{"minReadySeconds":1}}`,
		},
	}
}

func daemonSets() workloadKind {
	return workloadKind{
		apiVersion: "apps/v1", kind: "DaemonSet", spec: `"minReadySeconds":0`,
		stops:    `{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}`,
		resumes:  `{"spec":{"updateStrategy":{"type":"RollingUpdate"}}}`,
		admitted: []string{`{"spec":{"minReadySeconds":1}}`},
	}
}

// cloneSets describes a custom kind that the test installs.
func cloneSets() workloadKind {
	return workloadKind{
		apiVersion: "e2e.breakwater.dev/v1", kind: "CloneSet", spec: `"replicas":1`, scales: true,
		stops:    `{"spec":{"updateStrategy":{"paused":true}}}`,
		resumes:  `{"spec":{"updateStrategy":null}}`,
		admitted: []string{`{"spec":{"updateStrategy":{"maxUnavailable":1}}}`},
	}
}

// applyObject runs `kubectl apply` with an object.
func (n *namespace) applyObject(t *testing.T, object string) {
	t.Helper()
	n.kubectl.Require(t, object, "apply", "-f", "-")
}

// createUnready creates an object db of the kind, whose pods never become
// Ready. No node matches the pods. A DaemonSet without a matching node wants no
// pod and succeeds at once, so its pods have an image that does not exist.
func (n *namespace) createUnready(t *testing.T, k workloadKind) {
	t.Helper()
	node, image := "test.breakwater.dev/no", "busybox"
	if k.kind == "DaemonSet" {
		node, image = "kubernetes.io/os", "nowhere.invalid/none"
	}
	n.applyObject(t, fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"db"},"spec":{%s,"selector":{"matchLabels":{"app":"db"}},`+
		`"template":{"metadata":{"labels":{"app":"db"}},"spec":{"nodeSelector":{%q:"linux"},`+
		`"containers":[{"name":"sleep","image":%q}]}}}}`, k.apiVersion, k.kind, k.spec, node, image))
}

// metadata returns the labels and annotations of db.
func (n *namespace) metadata(t *testing.T, k workloadKind) (labels, annotations map[string]string) {
	t.Helper()
	return n.metadataOf(t, k.lowerKind(), "db")
}

func (n *namespace) metadataOf(t *testing.T, kind, name string) (labels, annotations map[string]string) {
	t.Helper()
	var o struct {
		Metadata struct{ Labels, Annotations map[string]string }
	}
	if err := json.Unmarshal([]byte(n.run(t, "get", kind, name, "-o", "json")), &o); err != nil {
		t.Fatal(err)
	}
	return o.Metadata.Labels, o.Metadata.Annotations
}

// checkKindDenied runs kubectl, which must be denied with exactly the message
// of the kind.
func (n *namespace) checkKindDenied(t *testing.T, k workloadKind, args ...string) {
	t.Helper()
	text := k.lowerKind() + " db is suspended"
	want := "Error from server (" + text + `): admission webhook "` + k.webhookName() + `" denied the request: ` + text
	if r := n.try(t, args...); r.Code == 0 || r.Errors() != want {
		t.Errorf("the command was not denied as expected:\n%s\nwant on stderr:\n%s", r, want)
	}
}

// suspensionOfKind checks that a suspended object of a kind is treated like a
// Deployment.
func suspensionOfKind(k workloadKind) func(*testing.T, *environment) {
	return func(t *testing.T, e *environment) {
		n := e.optedInNamespace(t)
		n.createUnready(t, k)
		n.checkSuspension(t, k)
	}
}

// suspendedSince is the value of the label of a suspension, in Unix seconds.
const suspendedSince = "1700000000"

func (n *namespace) checkSuspension(t *testing.T, k workloadKind) {
	t.Helper()
	patch := func(body string) []string { return []string{"patch", k.lowerKind(), "db", "--type=merge", "-p", body} }
	labels, annotations := n.metadata(t, k)
	if v := labels[v1alpha1.VersionKey]; len(v) != 32 || annotations[v1alpha1.VersionKey] != v || annotations[v1alpha1.AttemptAnnotation] != "1" {
		t.Fatalf("labels %v, annotations %v, want a version and attempt 1", labels, annotations)
	}
	n.run(t, "label", k.lowerKind(), "db", v1alpha1.SuspendLabel+"="+suspendedSince)

	for _, body := range k.admitted {
		n.run(t, patch(body)...)
	}
	if k.scales {
		n.run(t, "scale", k.lowerKind(), "db", "--replicas=2")
	}
	n.run(t, "label", k.lowerKind(), "db", "team=a")
	n.run(t, "annotate", k.lowerKind(), "db", "owner=me")
	n.run(t, patch(k.stops)...)

	n.checkKindDenied(t, k, patch(k.resumes)...)
	n.checkKindDenied(t, k, patch(templatePatch)...)
	n.checkKindDenied(t, k, append(patch(templatePatch), "--dry-run=server")...)
	n.checkKindDenied(t, k, "label", k.lowerKind(), "db", v1alpha1.SuspendLabel+"-")
	n.awaitEvent(t, "db", v1alpha1.ReasonReleaseDenied, k.lowerKind()+" db is suspended")

	n.run(t, patch(repairOf("v2"))...)
	labels, annotations = n.metadata(t, k)
	if annotations[v1alpha1.AttemptAnnotation] != "2" || labels[v1alpha1.SuspendLabel] != suspendedSince || labels[v1alpha1.IgnoredSuspendLabel] != "" {
		t.Errorf("after the repair: labels %v, annotations %v", labels, annotations)
	}
	var record v1alpha1.Bypass
	if err := json.Unmarshal([]byte(annotations[v1alpha1.BypassAnnotation]), &record); err != nil ||
		record.Kind != v1alpha1.BypassRepair || record.Attempt != 2 || record.User == "" || record.Time.IsZero() {
		t.Errorf("the record of the repair is %s (%v)", annotations[v1alpha1.BypassAnnotation], err)
	}
	n.checkKindDenied(t, k, patch(templatePatch)...)
}

const crd = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"clonesets.e2e.breakwater.dev"},
"spec":{"group":"e2e.breakwater.dev","scope":"Namespaced","names":{"kind":"CloneSet","plural":"clonesets","singular":"cloneset"},
"versions":[{"name":"v1","served":true,"storage":true,
"subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}},
"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
"status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}}`

// cloneSetEntry is the CloneSet in config-workloads.
const cloneSetEntry = "- {apiVersion: e2e.breakwater.dev/v1, kind: CloneSet, revisions: ControllerRevision, pause: spec.updateStrategy.paused}\n"

// kindsPatch returns the arguments of kubectl that set the kinds of
// config-workloads.
func kindsPatch(t *testing.T, kinds string) []string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"data": map[string]string{"kinds": kinds}})
	if err != nil {
		t.Fatal(err)
	}
	return []string{"patch", "configmap", "config-workloads", "-n", system, "--type=merge", "-p", string(body)}
}

// configureCloneSets installs the CRD and adds the kind to config-workloads
// until the test ends. It returns the kubectl arguments that restore
// config-workloads.
func (n *namespace) configureCloneSets(t *testing.T) (restore []string) {
	t.Helper()
	n.applyObject(t, crd)
	n.cleanup(t, "delete", "crd", "clonesets.e2e.breakwater.dev")
	n.run(t, "wait", "--for=condition=Established", "crd/clonesets.e2e.breakwater.dev")
	restore = kindsPatch(t, n.run(t, "get", "configmap", "config-workloads", "-n", system, "-o", "jsonpath={.data.kinds}"))
	n.cleanup(t, restore...)
	n.run(t, kindsPatch(t, cloneSetEntry)...)
	return restore
}

// awaitKindConfigured creates db repeatedly until the webhook adds a version.
func (n *namespace) awaitKindConfigured(t *testing.T, k workloadKind) {
	t.Helper()
	await(t, shortTimeout, "the webhook handles the kind", func(context.Context) error {
		n.createUnready(t, k)
		labels, _ := n.metadata(t, k)
		if labels[v1alpha1.VersionKey] == "" {
			n.run(t, "delete", k.lowerKind(), "db")
			return fmt.Errorf("labels %v", labels)
		}
		return nil
	})
}

// configuredKind is judged while config-workloads lists it.
func configuredKind(t *testing.T, e *environment) {
	n, k := e.optedInNamespace(t), cloneSets()
	mistake := strings.Replace(cloneSetEntry, "pause: spec", "pause: status", 1)
	if r := n.try(t, kindsPatch(t, mistake)...); r.Code == 0 || !strings.Contains(r.Stderr, "kinds[0].pause") {
		t.Errorf("an invalid entry is not denied with its field:\n%s", r)
	}
	restore := n.configureCloneSets(t)
	n.awaitKindConfigured(t, k)
	// Another replica may register the webhook that denies, and register it later.
	n.run(t, "label", "cloneset", "db", v1alpha1.SuspendLabel+"="+suspendedSince)
	n.awaitAnswers(t, shortTimeout, 1, "patch", "cloneset", "db", "--type=merge", "-p", templatePatch, "--dry-run=server")
	n.checkSuspension(t, k)

	n.run(t, restore...)
	await(t, shortTimeout, "the webhook does not handle the kind", func(context.Context) error {
		if r := n.try(t, "patch", "cloneset", "db", "--type=merge", "-p", templatePatch); r.Code != 0 {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
}

// bypassNeedsTheVerb: a repair needs the verb bypass when OpsConfigInfo bypass is
// Authorized.
func bypassNeedsTheVerb(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.suspendWeb(t)
	n.run(t, "create", "rolebinding", "edits", "--clusterrole=edit", "--user=alice")
	n.applyObject(t, `{"apiVersion":"app.ops.cloud.alipay.com/v1alpha1","kind":"OpsConfigInfo","metadata":{"name":"bypass","namespace":"`+system+`","labels":{"`+testLabel+`":"true"}},`+
		`"spec":{"type":"bypass","content":"Authorized","enable":true}}`)
	n.cleanup(t, "delete", "opsconfiginfo", "bypass", "-n", system)
	repairs := []string{"patch", "deployment", "web", "--type=merge", "-p", repairOf("v2"), "--as=alice"}
	lacks := func(args ...string) {
		t.Helper()
		r := n.try(t, args...)
		if r.Code == 0 || !strings.Contains(r.Stderr, `deployment web is suspended: a repair requires the verb "bypass" on changeworkloads.app.ops.cloud.alipay.com in namespace `+n.name) ||
			!strings.Contains(r.Stderr, "alice") {
			t.Errorf("the command was not denied as expected:\n%s", r)
		}
	}
	n.awaitAnswers(t, shortTimeout, 1, append(repairs, "--dry-run=server")...)
	lacks(append(repairs, "--dry-run=server")...)
	lacks(repairs...)

	n.run(t, "create", "rolebinding", "repairs", "--clusterrole=breakwater-bypass", "--user=alice")
	n.awaitAnswers(t, shortTimeout, 0, append(repairs, "--dry-run=server")...)
	n.run(t, repairs...)
	_, annotations := n.metadataOf(t, "deployment", "web")
	if !strings.Contains(annotations[v1alpha1.BypassAnnotation], `"user":"alice"`) {
		t.Errorf("the record of the repair is %s", annotations[v1alpha1.BypassAnnotation])
	}
	n.awaitEvent(t, "web", v1alpha1.ReasonRepairAdmitted, "alice")
}
