package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/test/e2e/kubectl"
)

// orders is the namespace of the protected pods. The chapter deletes it and its simulated
// nodes at the end.
const orders = "demo-protection"

// protection shows a mistaken deletion that is denied, a budget, and a drain that waits for
// the budget and completes.
func (s *steps) protection(ctx context.Context) error {
	return inOrder(ctx, s.removeProtected, s.mistakenDeletion, s.deletionOfPods, s.drain, s.removeProtected)
}

func (s *steps) mistakenDeletion(ctx context.Context) error {
	s.title("A mistaken deletion is denied")
	s.explain("Four pods run on two simulated nodes. The label protects the Deployment from a deletion\n" +
		"while it has pods. Namespaces and CustomResourceDefinitions can have it, too.")
	if err := s.all(ctx,
		[]string{"create", "namespace", orders},
		[]string{"apply", "-f", manifests + "nodes.yaml"},
		[]string{"wait", "--for=condition=Ready", "node", "-l", "demo=protection", waitTimeout},
		[]string{"apply", "-n", orders, "-f", manifests + "orders.yaml"},
		[]string{"rollout", "status", "deployment", "orders", "-n", orders, waitTimeout},
		[]string{"label", "deployment", "orders", "-n", orders, "policy.kruise.io/disable-cascading-deletion=true"},
	); err != nil {
		return err
	}
	return s.denied(ctx, "protected from cascading deletion", "delete", "deployment", "orders", "-n", orders)
}

func (s *steps) deletionOfPods(ctx context.Context) error {
	s.title("A budget for deletions")
	s.explain("A PodUnavailableBudget counts deletions and in-place updates as well as evictions.\n" +
		"This one allows one unavailable pod:")
	if err := s.all(ctx,
		[]string{"apply", "-n", orders, "-f", manifests + "budget.yaml"},
		[]string{"wait", "--for=condition=Guarding", "pub", "orders", "-n", orders, waitTimeout},
		[]string{"get", "pub", "-n", orders},
	); err != nil {
		return err
	}
	s.explain("Delete all pods. A deletion is denied until the pod before it has been replaced. A simulated pod\n" +
		"is replaced within a second, so more than one deletion may be allowed:")
	if err := s.denied(ctx, "PodUnavailableBudget", "delete", "pods", "--all", "-n", orders, "--wait=false"); err != nil {
		return err
	}
	s.explain("The controller of the Deployment replaces the deleted pods:")
	if err := s.awaitOrders(ctx, ""); err != nil {
		return err
	}
	return s.all(ctx, []string{"get", "pub", "-n", orders})
}

func (s *steps) drain(ctx context.Context) error {
	s.title("A drain waits, and ends")
	s.explain("The drain of a node evicts a pod, is denied, tries again, and evicts the next pod when\n" +
		"the first one has been replaced on the other node:")
	output, code, err := s.tryInOrder(ctx, "drain", "demo-protection-a", waitTimeout)
	if err != nil {
		return err
	}
	if code != 0 || !strings.Contains(output, "will retry") {
		return fmt.Errorf("the drain failed or did not wait: %s", output)
	}
	s.explain("All pods run on the other node:")
	if err := s.awaitOrders(ctx, "demo-protection-b"); err != nil {
		return err
	}
	return s.all(ctx, []string{"get", "pods", "-n", orders, "-o", "wide"})
}

// awaitOrders waits until the budget counts four available pods. If node is not empty, it also
// waits until all of them are on this node.
func (s *steps) awaitOrders(ctx context.Context, node string) error {
	return until(ctx, "all pods are available", time.Minute, func(ctx context.Context) (bool, error) {
		pods, err := s.kube.CoreV1().Pods(orders).List(ctx, metav1.ListOptions{LabelSelector: "app=orders"})
		if err != nil || slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return node != "" && p.Spec.NodeName != node }) {
			return false, err
		}
		r, err := kubectl.Kubectl{}.Run(ctx, "get", "pub", "orders", "-n", orders, "-o", "jsonpath={.status.currentAvailable},{.status.unavailableAllowed}")
		return len(pods.Items) == 4 && r.Stdout == "4,1", err
	})
}

// denied runs a command, which must be denied with the text.
func (s *steps) denied(ctx context.Context, text string, args ...string) error {
	output, code, err := s.tryInOrder(ctx, args...)
	if err != nil {
		return err
	}
	if code == 0 || !strings.Contains(output, text) {
		return fmt.Errorf("kubectl %s was not denied with %q", strings.Join(args, " "), text)
	}
	return nil
}

// removeProtected removes what the chapter created, also in a run that was interrupted.
func (s *steps) removeProtected(ctx context.Context) error {
	for _, args := range [][]string{
		{"delete", "deployment", "orders", "-n", orders, "--cascade=orphan", "--ignore-not-found"},
		{"delete", "pub", "orders", "-n", orders, "--ignore-not-found"},
		{"delete", "namespace", orders, "--ignore-not-found", waitTimeout},
		{"delete", "node", "-l", "demo=protection"},
	} {
		if r, err := (kubectl.Kubectl{}).Run(ctx, args...); err != nil || r.Code != 0 {
			return fmt.Errorf("clean up: %w\n%s", err, r)
		}
	}
	return nil
}
