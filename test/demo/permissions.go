package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/provider"
	"github.com/breakwater-dev/breakwater/test/provider/setup"
)

const (
	// shops is the namespace of the chapter on permissions.
	shops = "demo-permissions"
	// decides is how long the provider takes, in milliseconds: long enough to look.
	decides = 10_000
)

// permissions: a Deployment asks, its pod waits, is granted, starts, goes, and
// what it had is taken back.
func (s *story) permissions(ctx context.Context) (err error) {
	s.title("Permissions before a pod starts")
	s.say("A database has to know a pod's address before the pod may connect. Here a double stands\n" +
		"for it: a provider that takes ten seconds to decide. It is built and installed, and\n" +
		"registered at the permission centre, with permission orders-db and the set web.")
	var said bytes.Buffer // of no interest unless it goes wrong
	cluster, err := setup.Install(ctx, s.kube, ".", &said)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, said.String())
	}
	if err := cluster.Register(ctx, setup.WebObjects()...); err != nil {
		return err
	}
	if err := cluster.SetFaults(ctx, provider.Faults{DecideAfter: decides}); err != nil {
		return err
	}
	defer func() {
		if clean := cluster.SetFaults(context.WithoutCancel(ctx), provider.Faults{}); err == nil {
			err = clean
		}
	}()
	if err := s.all(ctx,
		[]string{"delete", "namespace", shops, "--ignore-not-found"},
		[]string{"create", "namespace", shops},
		[]string{"label", "namespace", shops, podmeta.Label + "=" + podmeta.LabelEnabled},
		[]string{"apply", "-n", shops, "-f", manifests + "shop.yaml"},
		[]string{"wait", "-n", shops, "--for=create", "pod", "-l", "app=shop", within},
	); err != nil {
		return err
	}
	s.say("Its pod waits, and says for what and whom to ask:")
	told := `{.status.conditions[?(@.type=="` + podmeta.ConditionAuthorized + `")]`
	if err := s.all(ctx,
		[]string{"wait", "-n", shops, "--for=jsonpath=" + told + ".reason}=" + podmeta.ReasonPermissionApplying, "pod", "-l", "app=shop", within},
		[]string{"get", "pods", "-n", shops},
		[]string{"get", "pods", "-n", shops, "-l", "app=shop", "-o", "jsonpath={.items[0]" + strings.TrimPrefix(told, "{") + `.message}{"\n"}`},
	); err != nil {
		return err
	}
	s.say("It is granted, and only now the application starts:")
	if err := s.all(ctx,
		[]string{"wait", "-n", shops, "--for=condition=Ready", "pod", "-l", "app=shop", within},
		[]string{"get", "events", "-n", shops, "--field-selector", "reason=" + podmeta.ReasonPermissionGranted},
	); err != nil {
		return err
	}
	pods, err := s.kube.CoreV1().Pods(shops).List(ctx, metav1.ListOptions{LabelSelector: "app=shop"})
	if err != nil {
		return err
	} else if len(pods.Items) != 1 {
		return fmt.Errorf("there are %d pods", len(pods.Items))
	}
	uid := string(pods.Items[0].UID)
	if err := s.books(ctx, cluster, uid, 1); err != nil {
		return err
	}
	s.say("The pod goes, and is gone when what it had is taken back:")
	if err := s.all(ctx,
		[]string{"delete", "deployment", "shop", "-n", shops},
		[]string{"wait", "-n", shops, "--for=delete", "pod", "-l", "app=shop", within},
	); err != nil {
		return err
	}
	return s.books(ctx, cluster, uid, 0)
}

// books shows what the provider has for a pod.
func (s *story) books(ctx context.Context, cluster *setup.Cluster, uid string, want int) error {
	books, err := cluster.ProviderStats(ctx)
	if err != nil {
		return err
	}
	held := books.OfPod(uid)
	s.print("\n(the provider's books have %d grants for the pod: %v)\n", len(held), held)
	if len(held) != want {
		return fmt.Errorf("the provider has %+v, where it should have %d", held, want)
	}
	return nil
}
