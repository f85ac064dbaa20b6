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

	"github.com/breakwater-dev/breakwater/test/e2e/impersonation"
	runner "github.com/breakwater-dev/breakwater/test/e2e/kubectl"
	"github.com/breakwater-dev/breakwater/test/provider/setup"
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
		}{"sets": {silent, new("10.0.0.1")}, "changes": {announced, new("10.0.0.2")}, "removes": {announced, nil}} {
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

func podWith(name, announcedIP string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{announcement: announcedIP}},
		Spec: corev1.PodSpec{NodeSelector: map[string]string{"no": "node"}, Containers: []corev1.Container{{Name: "app", Image: "busybox"}}}}
}

func binding() *corev1.Binding {
	return &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: silent, Annotations: map[string]string{announcement: "10.0.0.1"}},
		Target: corev1.ObjectReference{Kind: "Node", Name: "node"}}
}

// announcingFixture is a fixture in whose namespace attacker and cni may write pods. Pod announced has
// the annotation, pod silent has none.
func announcingFixture(t *testing.T) fixture {
	t.Helper()
	f := newFixture(t)
	kubectl(t, "", "create", "role", "announce", "-n", f.namespace, "--verb=get,create,patch,update",
		"--resource=pods,pods/status,pods/ephemeralcontainers,pods/resize,pods/binding,bindings")
	kubectl(t, "", "create", "rolebinding", "announce", "-n", f.namespace, "--role=announce", "--user="+attacker, "--user="+cni)
	plain := podWith(silent, "")
	plain.Annotations = nil
	for _, p := range []*corev1.Pod{podWith(announced, "10.0.0.9"), plain} {
		// The API server may still enforce the policy that an earlier test deleted.
		impersonation.ExpectCallBy(t, attacker, "", "creates pod "+p.Name, func(ctx context.Context, kube kubernetes.Interface) error {
			_, err := kube.CoreV1().Pods(f.namespace).Create(ctx, p, metav1.CreateOptions{})
			return err
		})
	}
	return f
}

// admits checks that the user may write the announcement by each request.
func (f fixture) admits(t *testing.T, by string) {
	t.Helper()
	for _, c := range announcingCalls() {
		impersonation.ExpectCallBy(t, by, "", c.what, func(ctx context.Context, kube kubernetes.Interface) error {
			_, err := c.send(ctx, kube, f.namespace)
			return err
		})
	}
}

// denies checks that the user may write the announcement by no request, because only the writer may.
func (f fixture) denies(t *testing.T, by, writer string) {
	t.Helper()
	for _, c := range announcingCalls() {
		want := "only " + writer + " sets the annotation " + announcement
		if c.ignored {
			want = ""
		}
		impersonation.ExpectCallBy(t, by, want, c.what, func(ctx context.Context, kube kubernetes.Interface) error {
			written, err := c.send(ctx, kube, f.namespace)
			if err == nil && c.ignored && written.GetAnnotations()[announcement] != map[string]string{announced: "10.0.0.9"}[written.GetName()] {
				return errors.New("the annotation is changed")
			}
			return err
		})
	}
}

// protectAnnouncement creates the policy of the sample with an annotation and its writer. The function
// that it returns deletes it.
func protectAnnouncement(t *testing.T, annotation, writer string) (remove func()) {
	t.Helper()
	manifest, err := setup.AnnouncementPolicy("../..", annotation, writer)
	if err != nil {
		t.Fatal(err)
	}
	remove = func() {
		t.Helper()
		if _, err := (runner.Kubectl{}).Output(context.Background(), manifest, "delete", "--ignore-not-found", "-f", "-"); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(remove)
	kubectl(t, manifest, "create", "-f", "-")
	return remove
}

// The permissions of a pod are granted to the address that the CNI plugin announces, so no one
// else may write it, in no namespace.
func TestOnlyTheCNIPluginAnnouncesTheAddressOfAPod(t *testing.T) {
	f := announcingFixture(t)
	f.admits(t, attacker)
	protectAnnouncement(t, announcement, cni)
	f.denies(t, attacker, cni)
	f.admits(t, cni)
	impersonation.ExpectPatchBy(t, attacker, "", f.namespace, announced, `{"metadata":{"annotations":{"a":"b"}}}`)
	impersonation.ExpectPatchBy(t, attacker, "", f.namespace, announced, `{"metadata":{"annotations":{"`+announcement+`":"10.0.0.9"}}}`)
	impersonation.ExpectPatchBy(t, attacker, "", f.namespace, silent, `{"metadata":{"annotations":null}}`, "status")
	impersonation.ExpectCallBy(t, attacker, "", "creates a pod without the annotation", func(ctx context.Context, kube kubernetes.Interface) error {
		p := podWith("new", "")
		p.Annotations = nil
		_, err := kube.CoreV1().Pods(f.namespace).Create(ctx, p, metav1.CreateOptions{DryRun: dryRun})
		return err
	})
	impersonation.ExpectCallBy(t, attacker, "", "binds a pod without the annotation", func(ctx context.Context, kube kubernetes.Interface) error {
		b := binding()
		b.Annotations = nil
		return kube.CoreV1().Pods(f.namespace).Bind(ctx, b, metav1.CreateOptions{DryRun: dryRun})
	})
	impersonation.ExpectCallBy(t, "admin", "only "+cni+" sets the annotation "+announcement, "creates a pod with the annotation in kube-system", func(ctx context.Context, _ kubernetes.Interface) error {
		_, err := f.Kube.CoreV1().Pods(metav1.NamespaceSystem).Create(ctx, podWith("new", "10.0.0.1"), metav1.CreateOptions{DryRun: dryRun})
		return err
	})
}

// After the last policy with a ConfigMap as parameter was deleted and created again, the API server used the
// former values, and admitted a forged address.
func TestAPolicyThatIsCreatedAgainProtectsTheAnnouncementByItsNewValues(t *testing.T) {
	f := announcingFixture(t)
	remove := protectAnnouncement(t, "test.breakwater.dev/former", cni)
	former := `{"metadata":{"annotations":{"test.breakwater.dev/former":"10.0.0.1"}}}`
	impersonation.ExpectPatchBy(t, attacker, "only "+cni+" sets the annotation test.breakwater.dev/former", f.namespace, silent, former)
	f.admits(t, attacker)
	for _, writer := range []string{"system:test:other", cni} {
		remove()
		remove = protectAnnouncement(t, announcement, writer)
		f.denies(t, attacker, writer)
		impersonation.ExpectPatchBy(t, attacker, "", f.namespace, silent, former)
		forged := `{"metadata":{"annotations":{"` + announcement + `":"10.0.0.1"}}}`
		want := ""
		if writer != cni {
			want = "only " + writer + " sets"
		}
		impersonation.ExpectPatchBy(t, cni, want, f.namespace, silent, forged, "status")
	}
}

// The server trusts the policy only as it was created, so the API server has to count the changes of both objects.
func TestAChangeOfThePolicyOfTheAnnouncementOrItsBindingIsSeenInItsGeneration(t *testing.T) {
	newFixture(t)
	protectAnnouncement(t, announcement, cni)
	const name = "breakwater-permission-announced-address"
	for resource, change := range map[string]string{
		"validatingadmissionpolicy":        `{"spec":{"validations":[{"expression":"true"}]}}`,
		"validatingadmissionpolicybinding": `{"spec":{"validationActions":["Warn"]}}`,
	} {
		for _, step := range []struct{ patch, want string }{{`{"metadata":{"labels":{"a":"b"}}}`, "1"}, {change, "2"}} {
			kubectl(t, "", "patch", resource, name, "--type=merge", "-p", step.patch)
			if got := kubectl(t, "", "get", resource, name, "-o", "jsonpath={.metadata.generation}"); got != step.want {
				t.Errorf("%s after %s: generation %s, want %s", resource, step.patch, got, step.want)
			}
		}
	}
}
