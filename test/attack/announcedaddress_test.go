//go:build controlplane

package attack

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/permission/settings"
	"github.com/breakwater-dev/breakwater/test/e2e/impersonation"
	runner "github.com/breakwater-dev/breakwater/test/e2e/kubectl"
)

const (
	announcement = "test.breakwater.dev/pod-ips"
	// cni is the user of the CNI plugin.
	cni = "system:test:cni"
	// announced is a pod with the announcement, silent one without.
	announced, silent = "announced", "silent"
)

var dryRun = []string{metav1.DryRunAll}

// announcingCall is a request that may write the announcement of a pod.
type announcingCall struct {
	what string
	// ignored: the API server admits the request without its change of the annotation.
	ignored bool
	send    func(ctx context.Context, kube kubernetes.Interface, namespace string) (metav1.Object, error)
}

func announcingCalls() []announcingCall {
	all := []announcingCall{
		{"creates a pod with the annotation", false, func(ctx context.Context, kube kubernetes.Interface, namespace string) (metav1.Object, error) {
			return kube.CoreV1().Pods(namespace).Create(ctx, podWith("new", "10.0.0.1"), metav1.CreateOptions{DryRun: dryRun})
		}},
		{"creates a pod with an empty annotation", false, func(ctx context.Context, kube kubernetes.Interface, namespace string) (metav1.Object, error) {
			return kube.CoreV1().Pods(namespace).Create(ctx, podWith("new", ""), metav1.CreateOptions{DryRun: dryRun})
		}},
		{"binds a pod with the annotation", false, func(ctx context.Context, kube kubernetes.Interface, namespace string) (metav1.Object, error) {
			return nil, kube.CoreV1().Pods(namespace).Bind(ctx, binding(), metav1.CreateOptions{DryRun: dryRun})
		}},
		{"creates a Binding with the annotation", false, func(ctx context.Context, kube kubernetes.Interface, namespace string) (metav1.Object, error) {
			return nil, kube.CoreV1().RESTClient().Post().Namespace(namespace).Resource("bindings").Param("dryRun", dryRun[0]).Body(binding()).Do(ctx).Error()
		}},
	}
	for _, subresource := range []string{"", "status", "ephemeralcontainers", "resize"} {
		for what, change := range map[string]struct {
			pod   string
			value *string
		}{"sets": {silent, value("10.0.0.1")}, "changes": {announced, value("10.0.0.2")}, "removes": {announced, nil}} {
			all = append(all, announcingCall{what + " the annotation through pods/" + subresource, subresource == "ephemeralcontainers" || subresource == "resize",
				func(ctx context.Context, kube kubernetes.Interface, namespace string) (metav1.Object, error) {
					patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{announcement: change.value}}})
					if err != nil {
						return nil, err
					}
					var subresources []string
					if subresource != "" {
						subresources = []string{subresource}
					}
					return kube.CoreV1().Pods(namespace).Patch(ctx, change.pod, types.StrategicMergePatchType, patch, metav1.PatchOptions{DryRun: dryRun}, subresources...)
				}})
		}
	}
	return all
}

func value(s string) *string { return &s }

func podWith(name, announcedIP string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{announcement: announcedIP}},
		Spec: corev1.PodSpec{NodeSelector: map[string]string{"no": "node"}, Containers: []corev1.Container{{Name: "app", Image: "busybox"}}}}
}

func binding() *corev1.Binding {
	return &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: silent, Annotations: map[string]string{announcement: "10.0.0.1"}},
		Target: corev1.ObjectReference{Kind: "Node", Name: "node"}}
}

// The permissions of a pod are granted to the address that the CNI plugin announces, so no one
// else may write it, in no namespace.
func TestOnlyTheCNIPluginAnnouncesTheAddressOfAPod(t *testing.T) {
	f := newFixture(t)
	const sample = "../../config/samples/announced-address.yaml"
	kubectl(t, "", "apply", "-f", sample)
	t.Cleanup(func() {
		if _, err := (runner.Kubectl{}).Output(context.Background(), "", "delete", "-f", sample); err != nil {
			t.Error(err)
		}
	})
	kubectl(t, "", "create", "role", "announce", "-n", f.namespace, "--verb=get,create,patch,update",
		"--resource=pods,pods/status,pods/ephemeralcontainers,pods/resize,pods/binding,bindings")
	kubectl(t, "", "create", "rolebinding", "announce", "-n", f.namespace, "--role=announce", "--user="+attacker, "--user="+cni)
	plain := podWith(silent, "")
	plain.Annotations = nil
	for _, p := range []*corev1.Pod{podWith(announced, "10.0.0.9"), plain} {
		if _, err := f.Kube.CoreV1().Pods(f.namespace).Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	admitted := func(by string, calls []announcingCall) {
		t.Helper()
		for _, c := range calls {
			impersonation.ExpectCallBy(t, by, "", c.what, func(ctx context.Context, kube kubernetes.Interface) error {
				_, err := c.send(ctx, kube, f.namespace)
				return err
			})
		}
	}
	configureAnnouncement(t, f, "", "")
	admitted(attacker, announcingCalls())

	configureAnnouncement(t, f, announcement, cni)
	const denied = "only " + cni + " sets the annotation " + announcement
	for _, c := range announcingCalls() {
		want := denied
		if c.ignored {
			want = ""
		}
		impersonation.ExpectCallBy(t, attacker, want, c.what, func(ctx context.Context, kube kubernetes.Interface) error {
			written, err := c.send(ctx, kube, f.namespace)
			if err == nil && c.ignored && written.GetAnnotations()[announcement] != map[string]string{announced: "10.0.0.9"}[written.GetName()] {
				return errors.New("the annotation is changed")
			}
			return err
		})
	}
	admitted(cni, announcingCalls())
	impersonation.ExpectPatchBy(t, attacker, "", f.namespace, announced, `{"metadata":{"annotations":{"a":"b"}}}`)
	impersonation.ExpectPatchBy(t, attacker, "", f.namespace, announced, `{"metadata":{"annotations":{"`+announcement+`":"10.0.0.9"}}}`)
	impersonation.ExpectCallBy(t, "admin", denied, "creates a pod with the annotation in kube-system", func(ctx context.Context, _ kubernetes.Interface) error {
		_, err := f.Kube.CoreV1().Pods(metav1.NamespaceSystem).Create(ctx, podWith("new", "10.0.0.1"), metav1.CreateOptions{DryRun: dryRun})
		return err
	})

	// The server does not use the annotation without both settings.
	configureAnnouncement(t, f, announcement, "")
	admitted(attacker, announcingCalls())
	configureAnnouncement(t, f, "", cni)
	admitted(attacker, announcingCalls())
}

// configureAnnouncement sets the annotation and its writer until the test ends.
func configureAnnouncement(t *testing.T, f fixture, annotation, writer string) {
	t.Helper()
	set := func(ctx context.Context, annotation, writer string) error {
		patch, err := json.Marshal(map[string]any{"data": map[string]string{
			settings.KeyAnnouncedAddressAnnotation: annotation, settings.KeyAnnouncedAddressWriter: writer,
		}})
		if err != nil {
			return err
		}
		_, err = f.Kube.CoreV1().ConfigMaps(v1alpha1.SystemNamespace).Patch(ctx, podmeta.ConfigName, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
	t.Cleanup(func() {
		if err := set(context.Background(), "", ""); err != nil {
			t.Error(err)
		}
	})
	if err := set(t.Context(), annotation, writer); err != nil {
		t.Fatal(err)
	}
}
