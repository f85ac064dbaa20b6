//go:build e2e

package permission

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/e2e/faultinjection"
)

// withoutCentre runs do while the permission centre is paused. Its store is kept.
func withoutCentre(t *testing.T, do func()) {
	t.Helper()
	pods, err := faultinjection.Component("permission-centre").Pods(t.Context(), testCluster.Kube)
	if err != nil || len(pods) != 1 {
		t.Fatalf("%d pods of the centre: %v", len(pods), err)
	}
	resume, err := faultinjection.Pause(&pods[0])
	if err != nil {
		t.Fatal(err)
	}
	resumeOnce := sync.OnceValue(resume)
	t.Cleanup(func() {
		if err := resumeOnce(); err != nil {
			t.Error(err)
		}
	})
	do()
	if err := resumeOnce(); err != nil {
		t.Fatal(err)
	}
}

// While the centre is down, a deleted namespace and a pod deleted by force disappear
// within the deadline. The leak is reported, and revoked when the centre is up.
func TestPodsAreDeletedWithinTheDeadlineWhileTheCentreIsDownAndRevokedLater(t *testing.T) {
	n, forced := newNamespace(t, enabled), newNamespace(t, enabled)
	n.mustApply(t, deployment("web", "web", 2))
	n.run(t, "rollout", "status", "deployment", "web", "--timeout=90s")
	forced.mustApply(t, podWith("web", "web", "Always", "sleep 1000"))
	forced.run(t, "wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
	pods := append(n.pods(t), *forced.get(t, "web"))
	withoutCentre(t, func() {
		if err := testCluster.Kube.CoreV1().Namespaces().Delete(t.Context(), n.name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		forced.run(t, "delete", "pod", "web", "--force", "--grace-period=0", "--wait=false")
		deleted := forced.get(t, "web").DeletionTimestamp.Time
		eventually(t, shortTimeout, "the container has ended", func() error {
			if s := forced.get(t, "web").Status.ContainerStatuses[0].State; s.Terminated == nil {
				return fmt.Errorf("%+v", s)
			}
			return nil
		})
		ended := time.Now()
		eventually(t, shortTimeout, "the namespace is deleted", func() error {
			_, err := testCluster.Kube.CoreV1().Namespaces().Get(t.Context(), n.name, metav1.GetOptions{})
			if apierrs.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("the namespace exists: %w", err)
		})
		forced.waitForDeletion(t, shortTimeout, "web")
		leaked := forced.waitForEvent(t, "web", podmeta.ReasonPermissionLeaked)
		// The times of the Event and the deletion are in whole seconds. The deadline begins when the
		// controller sees the end of the container.
		if took := leaked.LastTimestamp.Sub(deleted); took < revokeDeadline {
			t.Errorf("the leak was reported %s after the deletion, want at least the deadline of %s", took, revokeDeadline)
		}
		if took := leaked.LastTimestamp.Sub(ended); took > revokeDeadline+10*time.Second {
			t.Errorf("the leak was reported %s after the end of the container, want at most 10 s more than the deadline of %s", took, revokeDeadline)
		}
		for i := range pods {
			if len(grantsOf(t, &pods[i])) != 1 {
				t.Errorf("the provider has grants %v for %s", grantsOf(t, &pods[i]), pods[i].Name)
			}
		}
	})
	// The controller reports the pods to the centre, which revokes their grants.
	eventually(t, shortTimeout, "the leaked grants are revoked", func() error {
		left := 0
		for i := range pods {
			left += len(grantsOf(t, &pods[i]))
		}
		if left > 0 {
			return fmt.Errorf("the provider has %d grants", left)
		}
		return nil
	})
}

// The pod of a deleted node keeps its grant as long as the pod exists. Then the grant is
// revoked and the finalizer removed. The node has no kubelet: the test reports the pod's
// address and calls the init-action-server in place of the init container.
func TestAPodOfADeletedNodeIsRevoked(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, enabled)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "lost-", Labels: map[string]string{"test.breakwater.dev/lost": n.name}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "test.breakwater.dev/lost", Effect: corev1.TaintEffectNoSchedule}}}}
	node, err := testCluster.Kube.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = testCluster.Kube.CoreV1().Nodes().Delete(context.Background(), node.Name, metav1.DeleteOptions{})
	})
	n.mustApply(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: web, annotations: {stke.io/permission-set: web}},
 spec: {nodeName: %s, terminationGracePeriodSeconds: 1, tolerations: [{operator: Exists}], containers: [{name: app, image: busybox}]}}`, node.Name))
	eventually(t, shortTimeout, "the pod has the finalizer", func() error {
		if p := n.get(t, "web"); !podmeta.HasFinalizer(p) {
			return fmt.Errorf("finalizers %v", p.Finalizers)
		}
		return nil
	})
	p := n.get(t, "web")
	grantAsInitContainer(t, p)
	if got := grantsOf(t, p); len(got) != 1 {
		t.Fatalf("before the deletion: grants %v, want 1", got)
	}
	n.run(t, "delete", "pod", "web", "--wait=false")
	if err := testCluster.Kube.CoreV1().Nodes().Delete(t.Context(), node.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	n.waitForDeletion(t, 2*time.Minute, "web")
	if left := grantsOf(t, p); len(left) > 0 {
		t.Errorf("after the deletion: grants %v, want none", left)
	}
}

// grantAsInitContainer obtains the permissions of a pod without a kubelet. The server
// accepts calls from the pod's address only, so the pod gets one of this machine.
func grantAsInitContainer(t *testing.T, p *corev1.Pod) {
	t.Helper()
	token, err := testCluster.TokenOf(t.Context(), p.Namespace, "default", boundTo(p), protocol.TokenAudience)
	if err != nil {
		t.Fatal(err)
	}
	local, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range local {
		ip, ok := address.(*net.IPNet)
		if !ok || ip.IP.To4() == nil || ip.IP.IsLoopback() {
			continue
		}
		status := fmt.Sprintf(`{"status":{"podIP":%q,"podIPs":[{"ip":%[1]q}]}}`, ip.IP)
		if _, err := testCluster.Kube.CoreV1().Pods(p.Namespace).Patch(t.Context(), p.Name, types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
		code, answer := authorize(t, token, "web")
		if code == http.StatusOK && answer.State == protocol.Granted {
			return
		}
		if answer.Reason != "SourceAddressMismatch" {
			t.Fatalf("%d %+v, want a grant", code, answer)
		}
	}
	t.Fatalf("the server accepts none of the addresses %v", local)
}

// A draining pod keeps its grants.
func TestADrainingPodKeepsItsPermissionUntilItHasEnded(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, enabled)
	n.mustApply(t, `{apiVersion: v1, kind: Pod, metadata: {name: slow, annotations: {stke.io/permission-set: web}}, spec: {terminationGracePeriodSeconds: 12,
 containers: [{name: app, image: busybox, command: [/bin/sh, -c, "trap '' TERM; while true; do sleep 1; done"]}]}}`)
	n.run(t, "wait", "--for=condition=Ready", "pod/slow", "--timeout=60s")
	p := n.get(t, "slow")
	n.run(t, "delete", "pod", "slow", "--wait=false")
	for until := time.Now().Add(8 * time.Second); time.Now().Before(until); {
		if _, err := testCluster.Kube.CoreV1().Pods(n.name).Get(t.Context(), "slow", metav1.GetOptions{}); err != nil || len(grantsOf(t, p)) != 1 {
			t.Fatalf("while the pod drains: grants %v, %v", grantsOf(t, p), err)
		}
		time.Sleep(250 * time.Millisecond)
	}
	n.waitForDeletion(t, shortTimeout, "slow")
	if left := grantsOf(t, p); len(left) > 0 {
		t.Errorf("the provider has grants %v", left)
	}
}
