//go:build e2e

package permission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/e2e/replicas"
	"github.com/breakwater-dev/breakwater/test/provider"
	"github.com/breakwater-dev/breakwater/test/provider/setup"
)

// The pod of an annotated Deployment waits, gets its grant, starts and is deleted. Then its
// grant is revoked.
func TestAPodStartsWhenItIsGrantedAndIsRevokedWhenItEnds(t *testing.T) {
	n := newNamespace(t, enabled)
	setFaults(t, provider.Faults{DecideAfter: 3_600_000})
	n.mustApply(t, deployment("web", "web", 1))
	p := n.podOfApp(t, "web")
	if c := p.Spec.InitContainers; len(c) != 1 || c[0].Name != protocol.ContainerName || p.Labels[podmeta.Label] != podmeta.LabelRequired {
		t.Fatalf("the pod was not injected: %+v", p.Spec.InitContainers)
	}
	message := n.waitForReason(t, p.Name, podmeta.ReasonPermissionApplying)
	for _, text := range []string{"permission orders-db is Applying since", "ask " + setup.Owner} {
		if !strings.Contains(message, text) {
			t.Errorf("%q is not in %q", text, message)
		}
	}
	if waiting := n.get(t, p.Name); waiting.Status.Phase != corev1.PodPending || appStarted(waiting) {
		t.Errorf("the app started without permission: %+v", waiting.Status)
	}
	if body := n.run(t, "describe", "pod", p.Name); !strings.Contains(body, podmeta.ConditionAuthorized) || !strings.Contains(body, podmeta.ReasonPermissionRequested) {
		t.Errorf("kubectl describe lacks the condition or the Event:\n%s", body)
	}
	setFaults(t, provider.Faults{})
	n.run(t, "wait", "--for=condition=Ready", "pod", p.Name, "--timeout=60s")
	if p = n.get(t, p.Name); !podmeta.HasFinalizer(p) || len(grantsOf(t, p)) != 1 || grantsOf(t, p)[0].IP != p.Status.PodIP {
		t.Errorf("finalizers %v, grants %v, address %s", p.Finalizers, grantsOf(t, p), p.Status.PodIP)
	}
	n.run(t, "scale", "deployment", "web", "--replicas=0")
	n.waitForDeletion(t, shortTimeout, p.Name)
	if left := grantsOf(t, p); len(left) > 0 {
		t.Errorf("after the deletion the provider has grants %v", left)
	}
}

// The store of the centre is not deleted with its pod.
func TestARescheduledCentreRevokesWhatItGrantedBefore(t *testing.T) {
	n := newNamespace(t, enabled)
	n.mustApply(t, deployment("web", "web", 1))
	p := n.podOfApp(t, "web")
	n.run(t, "wait", "--for=condition=Ready", "pod", p.Name, "--timeout=60s")
	p = n.get(t, p.Name)
	t.Cleanup(func() { // if its store is lost
		if err := testCluster.Register(context.Background(), setup.WebObjects()...); err != nil {
			t.Error(err)
		}
	})
	for _, args := range [][]string{{"delete", "pod", "-l", "app.kubernetes.io/component=permission-centre"}, {"rollout", "status", "deployment", "permission-centre", "--timeout=120s"}} {
		if err := setup.Kubectl(t.Context(), append([]string{"-n", setup.System}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	if a := applications(t, p); len(a) != 1 || a[0].State != api.Granted {
		t.Errorf("after the restart the centre has %+v", a)
	}
	n.run(t, "scale", "deployment", "web", "--replicas=0")
	n.waitForDeletion(t, shortTimeout, p.Name)
	if left := grantsOf(t, p); len(left) > 0 {
		t.Errorf("after the deletion the provider has grants %v", left)
	}
}

func appStarted(p *corev1.Pod) bool {
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Running != nil || c.LastTerminationState.Terminated != nil {
			return true
		}
	}
	return false
}

// The grants of a completed pod of a Job are revoked before the pod is deleted.
func TestACompletedPodIsRevokedWithoutItsDeletion(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, enabled)
	n.mustApply(t, podWith("job", "web", "Never", "exit 0"))
	eventually(t, shortTimeout, "the pod has succeeded and lost the finalizer", func() error {
		p := n.get(t, "job")
		if p.Status.Phase != corev1.PodSucceeded || podmeta.HasFinalizer(p) {
			return fmt.Errorf("phase %s, finalizers %v", p.Status.Phase, p.Finalizers)
		}
		if left := grantsOf(t, p); len(left) > 0 {
			return fmt.Errorf("the provider has grants %v", left)
		}
		return nil
	})
	n.waitForEvent(t, "job", podmeta.ReasonPermissionRevoked)
}

// Pods without sets and pods of namespaces that are not enabled are not changed.
func TestPodsWithoutSetsAreNotChanged(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, enabled)
	n.mustApply(t, deployment("plain", "", 1))
	p := n.podOfApp(t, "plain")
	if len(p.Spec.InitContainers) > 0 || len(p.Finalizers) > 0 || p.Labels[podmeta.Label] != "" {
		t.Errorf("%+v", p)
	}
	off := newNamespace(t, nil)
	r := off.apply(t, deployment("web", "web", 1))
	if r.Code != 0 || !strings.Contains(r.Stderr, "does not have the label stke.io/permission=enabled") {
		t.Errorf("no warning:\n%s", r)
	}
	off.mustApply(t, podWith("web", "web", "Always", "sleep 1000"))
	if p := off.get(t, "web"); len(p.Spec.InitContainers) > 0 {
		t.Errorf("injected in a namespace that is not enabled")
	}
	off.waitForEvent(t, "web", podmeta.ReasonNamespaceNotEnabled)
}

// The annotation of the namespace applies to pods without an annotation.
func TestSetsOfTheNamespaceApply(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, enabled)
	n.run(t, "annotate", "namespace", n.name, podmeta.PermissionSetAnnotation+"=web")
	plain := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(1)),
		Containers: []corev1.Container{{Name: "app", Image: "busybox", Command: []string{"/bin/sleep", "infinity"}}}}}
	eventually(t, shortTimeout, "all webhook replicas read the annotation", func() error {
		return replicas.Reach(20, func() error {
			p, err := testCluster.Kube.CoreV1().Pods(n.name).Create(t.Context(), plain.DeepCopy(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil {
				return err
			}
			if podmeta.InitContainer(p) == nil {
				return errors.New("a pod is not injected")
			}
			return nil
		})
	})
	if _, err := testCluster.Kube.CoreV1().Pods(n.name).Create(t.Context(), plain, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	n.run(t, "wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
	p := n.get(t, "web")
	if len(grantsOf(t, p)) != 1 {
		t.Errorf("grants %v", grantsOf(t, p))
	}
	var zero int64
	if err := testCluster.Kube.CoreV1().Pods(n.name).Delete(t.Context(), "web", metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		t.Fatal(err)
	}
	n.waitForDeletion(t, time.Minute, "web") // forced deletion: the kubelet stops the pod anyway
	if left := grantsOf(t, p); len(left) > 0 {
		t.Errorf("after the deletion the provider has grants %v", left)
	}
}

// The API server compares the requests of all containers with those of the pod.
func TestAPodThatRequestsLessThanTheInitContainerIsAdmitted(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, enabled)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "small", Annotations: map[string]string{podmeta.PermissionSetAnnotation: "web"}}, Spec: corev1.PodSpec{
		Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi")}},
		Containers: []corev1.Container{{Name: "app", Image: "busybox"}}}}
	eventually(t, shortTimeout, "the pod is admitted and injected", func() error {
		admitted, err := testCluster.Kube.CoreV1().Pods(n.name).Create(t.Context(), p.DeepCopy(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && podmeta.InitContainer(admitted) == nil {
			err = errors.New("the pod is not injected")
		}
		return err
	})
}
