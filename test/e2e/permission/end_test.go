//go:build e2e

package permission

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	names "github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/e2e/disruption"
)

// withoutCentre runs do while the permission centre gives no answer. Its books stay.
func withoutCentre(t *testing.T, do func()) {
	t.Helper()
	pods, err := disruption.Component("permission-centre").Pods(t.Context(), bed.Kube)
	if err != nil || len(pods) != 1 {
		t.Fatalf("%d pods of the centre: %v", len(pods), err)
	}
	resume, err := disruption.Pause(&pods[0])
	if err != nil {
		t.Fatal(err)
	}
	again := sync.OnceValue(resume)
	t.Cleanup(func() {
		if err := again(); err != nil {
			t.Error(err)
		}
	})
	do()
	if err := again(); err != nil {
		t.Fatal(err)
	}
}

// The centre is down: a namespace that is deleted, and a pod that is deleted by
// force, go within the deadline; the leak is told, and healed when it is back.
func TestPodsGoWithinTheirDeadlineWhileTheCentreIsDownAndTheLeakIsHealed(t *testing.T) {
	n, forced := newNamespace(t, enabled), newNamespace(t, enabled)
	n.applied(t, deployment("web", "web", 2))
	n.run(t, "rollout", "status", "deployment", "web", "--timeout=90s")
	forced.applied(t, podWith("web", "web", "Always", "sleep 1000"))
	forced.run(t, "wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
	pods := append(n.pods(t), *forced.get(t, "web"))
	withoutCentre(t, func() {
		began := time.Now()
		if err := bed.Kube.CoreV1().Namespaces().Delete(t.Context(), n.name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		forced.run(t, "delete", "pod", "web", "--force", "--grace-period=0", "--wait=false")
		until(t, soon, "the namespace is gone", func() error {
			_, err := bed.Kube.CoreV1().Namespaces().Get(t.Context(), n.name, metav1.GetOptions{})
			if apierrs.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("it is there: %w", err)
		})
		forced.gone(t, soon, "web")
		t.Logf("gone after %s, with a deadline of 20 s", time.Since(began).Round(time.Second))
		if took := time.Since(began); took < 15*time.Second {
			t.Errorf("they went after %s: nobody tried", took)
		}
		forced.untilEvent(t, "web", names.ReasonPermissionLeaked)
		for i := range pods {
			if len(held(t, &pods[i])) != 1 {
				t.Errorf("the provider has %v of %s", held(t, &pods[i]), pods[i].Name)
			}
		}
	})
	// The controller tells the centre, which takes it back.
	until(t, soon, "what leaked is taken back", func() error {
		left := 0
		for i := range pods {
			left += len(held(t, &pods[i]))
		}
		if left > 0 {
			return fmt.Errorf("the provider has %d", left)
		}
		return nil
	})
}

// A pod whose node is gone is let go, and what it had is taken back.
func TestAPodOfANodeThatIsGoneIsRevoked(t *testing.T) {
	n := newNamespace(t, enabled)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "lost-", Labels: map[string]string{"test.breakwater.dev/lost": n.name}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "test.breakwater.dev/lost", Effect: corev1.TaintEffectNoSchedule}}}}
	node, err := bed.Kube.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bed.Kube.CoreV1().Nodes().Delete(context.Background(), node.Name, metav1.DeleteOptions{}) })
	n.applied(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: web, annotations: {stke.io/permission-set: web}},
 spec: {nodeName: %s, terminationGracePeriodSeconds: 1, tolerations: [{operator: Exists}], containers: [{name: app, image: busybox}]}}`, node.Name))
	until(t, soon, "it has the finalizer", func() error {
		if p := n.get(t, "web"); !names.HasFinalizer(p) {
			return fmt.Errorf("finalizers %v", p.Finalizers)
		}
		return nil
	})
	n.run(t, "delete", "pod", "web", "--wait=false")
	if err := bed.Kube.CoreV1().Nodes().Delete(t.Context(), node.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	n.gone(t, 2*time.Minute, "web")
}

// A pod that drains still has what it was granted.
func TestAPodThatDrainsKeepsItsPermissionUntilItHasEnded(t *testing.T) {
	n := newNamespace(t, enabled)
	n.applied(t, `{apiVersion: v1, kind: Pod, metadata: {name: slow, annotations: {stke.io/permission-set: web}}, spec: {terminationGracePeriodSeconds: 12,
 containers: [{name: app, image: busybox, command: [/bin/sh, -c, "trap '' TERM; while true; do sleep 1; done"]}]}}`)
	n.run(t, "wait", "--for=condition=Ready", "pod/slow", "--timeout=60s")
	p := n.get(t, "slow")
	n.run(t, "delete", "pod", "slow", "--wait=false")
	for until := time.Now().Add(8 * time.Second); time.Now().Before(until); {
		if _, err := bed.Kube.CoreV1().Pods(n.name).Get(t.Context(), "slow", metav1.GetOptions{}); err != nil || len(held(t, p)) != 1 {
			t.Fatalf("while it drains: held %v, %v", held(t, p), err)
		}
		time.Sleep(250 * time.Millisecond)
	}
	n.gone(t, soon, "slow")
	if left := held(t, p); len(left) > 0 {
		t.Errorf("the provider has %v", left)
	}
}
