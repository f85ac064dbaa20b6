//go:build e2e

package permission

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	names "github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/provider"
	"github.com/breakwater-dev/breakwater/test/provider/setup"
)

// An annotated Deployment: its pod waits, is granted, starts, is deleted, and
// what it had is taken back.
func TestAPodStartsWhenItIsGrantedAndIsRevokedWhenItGoes(t *testing.T) {
	n := newNamespace(t, enabled)
	faults(t, provider.Faults{DecideAfter: 4000})
	n.applied(t, deployment("web", "web", 1))
	p := n.one(t, "web")
	if c := p.Spec.InitContainers; len(c) != 1 || c[0].Name != protocol.ContainerName || p.Labels[names.Label] != names.LabelRequired {
		t.Fatalf("it was not injected: %+v", p.Spec.InitContainers)
	}
	message := n.untilReason(t, p.Name, names.ReasonPermissionApplying)
	for _, words := range []string{"permission orders-db is Applying since", "ask " + setup.Owner} {
		if !strings.Contains(message, words) {
			t.Errorf("%q is not in %q", words, message)
		}
	}
	if waiting := n.get(t, p.Name); waiting.Status.Phase != corev1.PodPending || started(waiting) {
		t.Errorf("the app started without permission: %+v", waiting.Status)
	}
	if told := n.run(t, "describe", "pod", p.Name); !strings.Contains(told, names.ConditionAuthorized) || !strings.Contains(told, names.ReasonPermissionRequested) {
		t.Errorf("kubectl describe says nothing of it:\n%s", told)
	}
	n.run(t, "wait", "--for=condition=Ready", "pod", p.Name, "--timeout=60s")
	if p = n.get(t, p.Name); !names.HasFinalizer(p) || len(held(t, p)) != 1 || held(t, p)[0].IP != p.Status.PodIP {
		t.Errorf("finalizers %v, held %v, address %s", p.Finalizers, held(t, p), p.Status.PodIP)
	}
	n.run(t, "scale", "deployment", "web", "--replicas=0")
	n.gone(t, soon, p.Name)
	if left := held(t, p); len(left) > 0 {
		t.Errorf("it is gone and the provider has %v", left)
	}
}

func started(p *corev1.Pod) bool {
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Running != nil || c.LastTerminationState.Terminated != nil {
			return true
		}
	}
	return false
}

// A finished Job releases its address although nobody deletes its pod.
func TestAFinishedPodIsRevokedAlthoughNobodyDeletesIt(t *testing.T) {
	n := newNamespace(t, enabled)
	n.applied(t, podWith("job", "web", "Never", "exit 0"))
	until(t, soon, "the pod has succeeded and lost the finalizer", func() error {
		p := n.get(t, "job")
		if p.Status.Phase != corev1.PodSucceeded || names.HasFinalizer(p) {
			return fmt.Errorf("phase %s, finalizers %v", p.Status.Phase, p.Finalizers)
		}
		if left := held(t, p); len(left) > 0 {
			return fmt.Errorf("the provider has %v", left)
		}
		return nil
	})
	n.untilEvent(t, "job", names.ReasonPermissionRevoked)
}

// Pods that ask for nothing, and pods of namespaces that are not enabled, never
// hear of us.
func TestWhoDoesNotAskIsLeftAlone(t *testing.T) {
	n := newNamespace(t, enabled)
	n.applied(t, deployment("plain", "", 1))
	p := n.one(t, "plain")
	if len(p.Spec.InitContainers) > 0 || len(p.Finalizers) > 0 || p.Labels[names.Label] != "" {
		t.Errorf("%+v", p)
	}
	off := newNamespace(t, nil)
	r := off.apply(t, deployment("web", "web", 1))
	if r.Code != 0 || !strings.Contains(r.Stderr, "does not have the label stke.io/permission=enabled") {
		t.Errorf("nobody is warned:\n%s", r)
	}
	off.applied(t, podWith("web", "web", "Always", "sleep 1000"))
	if p := off.get(t, "web"); len(p.Spec.InitContainers) > 0 {
		t.Errorf("injected in a namespace that is not enabled")
	}
	off.untilEvent(t, "web", names.ReasonNamespaceNotEnabled)
}

// The namespace's annotation counts for pods that say nothing.
func TestSetsOfTheNamespaceCount(t *testing.T) {
	n := newNamespace(t, enabled)
	n.run(t, "annotate", "namespace", n.name, names.SetAnnotation+"=web")
	plain := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To(int64(1)),
		Containers: []corev1.Container{{Name: "app", Image: "busybox", Command: []string{"/bin/sleep", "infinity"}}}}}
	until(t, soon, "the webhook has heard of it", func() error {
		for range 20 { // as many as it takes to meet every replica of the webhook
			p, err := bed.Kube.CoreV1().Pods(n.name).Create(t.Context(), plain, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil {
				return err
			}
			if names.InitContainer(p) == nil {
				return errors.New("a pod would not wait")
			}
		}
		return nil
	})
	if _, err := bed.Kube.CoreV1().Pods(n.name).Create(t.Context(), plain, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	n.run(t, "wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
	p := n.get(t, "web")
	if len(held(t, p)) != 1 {
		t.Errorf("held %v", held(t, p))
	}
	var zero int64
	if err := bed.Kube.CoreV1().Pods(n.name).Delete(t.Context(), "web", metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		t.Fatal(err)
	}
	n.gone(t, time.Minute, "web") // by force: the kubelet stops it all the same
	if left := held(t, p); len(left) > 0 {
		t.Errorf("it is gone and the provider has %v", left)
	}
}
