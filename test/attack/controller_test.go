//go:build controlplane

package attack

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/test/e2e/impersonation"
)

// controllerWorkloads are a StatefulSet whose pod is Pending, a Deployment and a DaemonSet. They are no
// List: to validate one, kubectl reads the OpenAPI document of all kinds, which the API server writes
// again after each change of a CRD.
const controllerWorkloads = `
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: set}, spec: {replicas: 1, serviceName: set, selector: {matchLabels: {app: set}},
 template: {metadata: {labels: {app: set}}, spec: {nodeSelector: {no: node}, containers: [{name: app, image: busybox}]}}}}
---
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: daemon}, spec: {selector: {matchLabels: {app: daemon}},
 template: {metadata: {labels: {app: daemon}}, spec: {nodeSelector: {no: node}, containers: [{name: app, image: busybox}]}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1, selector: {matchLabels: {app: web}},
 template: {metadata: {labels: {app: web}}, spec: {nodeSelector: {no: node}, containers: [{name: app, image: busybox}]}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: bare}, spec: {nodeSelector: {no: node}, containers: [{name: app, image: busybox}]}}
---
{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: other}, revision: 1, data: {spec: {template: {}}}}`

// saved is a template that the controller saved.
const saved = `{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: saved, labels: {app.ops.cloud.alipay.com/history-of: a}}, revision: 1, data: {spec: {template: {}}}}`

// An attacker who takes over the controller can do only what the controller does. All tests of
// test/change show that it has the rights that it needs: they run it with its ServiceAccount.
func TestTheServiceAccountOfTheControllerCannotRunImages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	elsewhere := f.newNamespace(t, nil)
	for _, namespace := range []string{f.namespace, elsewhere} {
		kubectl(t, controllerWorkloads, "apply", "-n", namespace, "-f", "-")
		f.save(t, namespace)
		kubectl(t, "", "wait", "-n", namespace, "--for=create", "--timeout=60s", "pod/set-0")
	}
	image := `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"evil"}]}}}}`
	const controller = "controller"
	const pods, template, revision = "to a pod", "in namespaces that are opted in", "history-of"
	for _, tc := range []struct {
		namespace, resource, patch string
		// want is a part of the denial; empty if the write is allowed.
		want string
	}{
		{f.namespace, "pod/bare", `{"metadata":{"labels":{"altershield.defense.antgroup.com/operate-finished":"true"}}}`, ""},
		{elsewhere, "pod/bare", `{"metadata":{"labels":{"app":"web"}}}`, pods},
		{elsewhere, "pod/set-0", `{"metadata":{"labels":{"app":null}}}`, pods},
		{elsewhere, "pod/bare", `{"metadata":{"annotations":{"a":"b"}}}`, "annotations"},
		{elsewhere, "pod/bare", `{"metadata":{"finalizers":["a.example/b"]}}`, "finalizers"},
		{elsewhere, "pod/bare", `{"spec":{"containers":[{"name":"app","image":"evil"}]}}`, "the spec of a pod"},
		{f.namespace, "pod/bare", `{"spec":{"activeDeadlineSeconds":1}}`, "the spec of a pod"},

		{f.namespace, "deployment/web", image, ""},
		{elsewhere, "deployment/web", image, template},
		{elsewhere, "statefulset/set", image, template},
		{elsewhere, "daemonset/daemon", image, template},
		{f.namespace, "deployment/web", `{"spec":{"paused":true}}`, ""},
		{f.namespace, "deployment/web", `{}`, ""},
		{f.namespace, "statefulset/set", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":9}}}}`, ""},
		{elsewhere, "statefulset/set", `{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}`, "only the partition"},
		{f.namespace, "daemonset/daemon", `{"spec":{"updateStrategy":{"type":"OnDelete"}}}`, ""},
		{f.namespace, "deployment/web", `{"spec":{"replicas":0}}`, "only the template"},
		{f.namespace, "statefulset/set", `{"spec":{"replicas":0}}`, "only the template"},
		{f.namespace, "deployment/web", `{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}`, "only the template"},
		{f.namespace, "daemonset/daemon", `{"spec":{"minReadySeconds":100}}`, "only the template"},
		{f.namespace, "deployment/web", `{"metadata":{"finalizers":["a.example/b"]}}`, "finalizers"},

		{f.namespace, "controllerrevision/other", `{"revision":2}`, revision},
		{f.namespace, "controllerrevision/saved", `{"revision":2}`, ""},
		{f.namespace, "controllerrevision/saved", `{"metadata":{"labels":{"app.ops.cloud.alipay.com/history-of":"b"}}}`, "labels"},
	} {
		t.Run(tc.resource+" "+tc.patch, func(t *testing.T) {
			impersonation.Expect(t, controller, tc.want, "patch", "-n", tc.namespace, tc.resource, "--type", "strategic", "-p", tc.patch)
		})
	}
	impersonation.Expect(t, controller, "not Ready", "delete", "-n", f.namespace, "pod", "bare")
	impersonation.Expect(t, controller, "opted in", "delete", "-n", elsewhere, "pod", "set-0")
	impersonation.Expect(t, controller, revision, "delete", "-n", f.namespace, "controllerrevision", "other")
	impersonation.Expect(t, controller, "", "delete", "-n", f.namespace, "controllerrevision", "saved")
	impersonation.Expect(t, controller, "", "delete", "-n", f.namespace, "pod", "set-0")
	if _, err := f.Kube.CoreV1().Pods(f.namespace).Patch(t.Context(), "set-0", types.StrategicMergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	impersonation.Expect(t, controller, "not Ready", "delete", "-n", f.namespace, "pod", "set-0")
}
