//go:build controlplane

package attack

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/e2e/impersonation"
)

// An attacker who takes over a process of part permission can change neither the image nor the
// address of a pod. All other tests show that the processes can write what they need.
func TestTheServiceAccountsOfPermissionWriteOnlyTheFinalizerAndOneCondition(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kubectl(t, `{apiVersion: v1, kind: Pod, metadata: {name: web, labels: {app: web}, finalizers: [a.example/b]},
 spec: {nodeSelector: {no: node}, containers: [{name: app, image: busybox}]}}`, "apply", "-n", f.namespace, "-f", "-")
	t.Cleanup(func() {
		if _, err := f.Kube.CoreV1().Pods(f.namespace).Patch(context.Background(), "web", types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	})
	const controller, server = "permission-controller", "init-action-server"
	status := []string{"status"}
	const authorized, injected = `{"type":"stke.io/Authorized","status":"True"}`, `{"type":"stke.io/PermissionInjected","status":"False"}`
	for _, tc := range []struct {
		account      string
		subresources []string
		patch, want  string
	}{
		{controller, nil, `{"metadata":{"finalizers":["stke.io/podpermission-protection"]}}`, ""},
		{controller, nil, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["a.example/b"]}}`, "only the finalizer"},
		{controller, nil, `{"metadata":{"finalizers":["c.example/d"]}}`, "only the finalizer"},
		{controller, nil, `{"metadata":{"labels":{"app":"other"}}}`, "only the finalizer"},
		{controller, nil, `{"metadata":{"annotations":{"a":"b"}}}`, "only the finalizer"},
		{controller, nil, `{"spec":{"containers":[{"name":"app","image":"evil"}]}}`, "the spec of a pod"},
		{controller, status, `{"status":{"conditions":[` + injected + `]}}`, ""},
		{controller, status, `{"status":{"conditions":[` + authorized + `]}}`, "only the condition stke.io/PermissionInjected"},
		{controller, status, `{"status":{"phase":"Failed"}}`, "only its condition"},
		// pods/status writes finalizers, too.
		{controller, status, `{"metadata":{"finalizers":["c.example/d"]}}`, "only its condition"},
		{controller, status, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["a.example/b"]}}`, "only its condition"},
		{server, status, `{"status":{"conditions":[` + authorized + `]}}`, ""},
		{server, status, `{"status":{"conditions":[` + injected + `]}}`, "only the condition stke.io/Authorized"},
		{server, status, `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, "only the condition stke.io/Authorized"},
		{server, status, `{"metadata":{"finalizers":["c.example/d"]}}`, "only its condition"},
		{server, status, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["a.example/b"]}}`, "only its condition"},
		{server, status, `{"status":{"podIP":"10.9.9.9","podIPs":[{"ip":"10.9.9.9"}]}}`, "only its condition"},
		{server, status, `{"status":{"containerStatuses":[{"name":"app","image":"a","imageID":"","ready":true,"restartCount":0}]}}`, "only its condition"},
	} {
		impersonation.ExpectPatch(t, tc.account, tc.want, f.namespace, "web", tc.patch, tc.subresources...)
	}
	// A mutating webhook may add labels and annotations to each update.
	kubectl(t, "", "delete", "pod", "web", "-n", f.namespace, "--wait=false")
	for patch, want := range map[string]string{
		`{"metadata":{"labels":{"app":"other"}}}`:             "only the finalizer",
		`{"metadata":{"labels":{"app":null}}}`:                "only the finalizer",
		`{"metadata":{"labels":{"added":"a"}}}`:               "",
		`{"metadata":{"annotations":{"added":"a"}}}`:          "",
		`{"metadata":{"ownerReferences":[` + jobOwner + `]}}`: "only the finalizer",
	} {
		impersonation.ExpectPatch(t, controller, want, f.namespace, "web", patch)
	}
}

const jobOwner = `{"apiVersion":"batch/v1","kind":"Job","name":"a","uid":"u"}`

// A user who may write pods cannot remove a pod before its permissions are revoked. Otherwise
// the next pod with its address would have them.
func TestTheFinalizerOfAPodIsRemovedOnlyByBreakwater(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kubectl(t, `{apiVersion: v1, kind: Pod, metadata: {name: web, finalizers: [stke.io/podpermission-protection, a.example/b]},
 spec: {nodeSelector: {no: node}, containers: [{name: app, image: busybox}]}}`, "apply", "-n", f.namespace, "-f", "-")
	t.Cleanup(func() {
		if _, err := f.Kube.CoreV1().Pods(f.namespace).Patch(context.Background(), "web", types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	})
	const removed = `{"metadata":{"$deleteFromPrimitiveList/finalizers":["stke.io/podpermission-protection"]}}`
	const message = "only Breakwater removes the finalizer"
	impersonation.ExpectPatchBy(t, attacker, message, f.namespace, "web", removed)
	impersonation.ExpectPatchBy(t, attacker, message, f.namespace, "web", removed, "status")
	impersonation.ExpectPatchBy(t, attacker, "", f.namespace, "web", `{"metadata":{"$deleteFromPrimitiveList/finalizers":["a.example/b"]}}`)
	impersonation.ExpectPatch(t, "permission-controller", "", f.namespace, "web", removed)
	kubectl(t, "", "create", "rolebinding", "release", "-n", f.namespace, "--clusterrole=breakwater-release-pods", "--user="+attacker)
	impersonation.ExpectPatchBy(t, attacker, "", f.namespace, "web", removed)
}

// The API server copies the labels of a Binding to its pod. A pod without the label is missing in the report of existing
// pods, which revokes its permissions; one that gets it requests permissions that its namespace does not allow.
func TestABindingDoesNotChangeThePermissionLabelOfItsPod(t *testing.T) {
	f := announcingFixture(t)
	for what, tc := range map[string]struct {
		labels map[string]string
		want   string
	}{
		"with the label":      {map[string]string{podmeta.Label: podmeta.LabelRequired}, "a Binding cannot have the label stke.io/permission"},
		"with an empty label": {map[string]string{podmeta.Label: ""}, "a Binding cannot have the label stke.io/permission"},
		"with another label":  {map[string]string{"topology.kubernetes.io/zone": "a"}, ""},
		"without labels":      {nil, ""},
	} {
		b := binding()
		b.Annotations, b.Labels = nil, tc.labels
		impersonation.ExpectCallBy(t, attacker, tc.want, "binds a pod "+what, func(ctx context.Context, kube kubernetes.Interface) error {
			return kube.CoreV1().Pods(f.namespace).Bind(ctx, b, metav1.CreateOptions{DryRun: dryRun})
		})
		impersonation.ExpectCallBy(t, attacker, tc.want, "creates a Binding "+what, func(ctx context.Context, kube kubernetes.Interface) error {
			return kube.CoreV1().RESTClient().Post().Namespace(f.namespace).Resource("bindings").Param("dryRun", dryRun[0]).Body(b).Do(ctx).Error()
		})
	}
}

// A webhook that runs after that of Breakwater, such as that of Istio, may move its own init container to the front.
func TestALabeledPodNeedsTheInitContainerAtAnyPlace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	// The webhook of pods does not run here, and is called in namespaces that are enabled only: the next rule of the policy denies.
	const only, next = "only Breakwater adds the label", "requires that its namespace has the label"
	for name, want := range map[string]string{protocol.ContainerName: next, "istio-validation," + protocol.ContainerName: next, "istio-validation": only, "": only} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{podmeta.Label: podmeta.LabelRequired}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "busybox"}}},
		}
		for container := range strings.SplitSeq(name, ",") {
			if container != "" {
				pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: container, Image: "busybox"})
			}
		}
		impersonation.ExpectCallBy(t, attacker, want, "creates a pod with init containers "+name, func(ctx context.Context, kube kubernetes.Interface) error {
			_, err := kube.CoreV1().Pods(f.namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: dryRun})
			return err
		})
	}
}
