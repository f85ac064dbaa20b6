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
	// shops is the namespace of the permissions step.
	shops = "demo-permissions"
	// decisionTime is the provider's decision time in milliseconds, long enough
	// to show the waiting pod.
	decisionTime = 10_000
)

// permissions shows a pod that waits for its permission, starts after the grant
// and is deleted after the grant is revoked.
func (s *steps) permissions(ctx context.Context) (err error) {
	s.title("Permissions before a pod starts")
	s.explain("A database must know the address of a pod before the pod can connect. Instead of a\n" +
		"database, the demo installs a test provider that decides after ten seconds. It registers\n" +
		"the provider, the permission orders-db and the permission set web at the permission centre.")
	var output bytes.Buffer // shown only after an error
	cluster, err := setup.Install(ctx, s.kube, ".", &output)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, output.String())
	}
	if err := cluster.Register(ctx, setup.WebObjects()...); err != nil {
		return err
	}
	if err := cluster.SetFaults(ctx, provider.Faults{DecideAfter: decisionTime}); err != nil {
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
		[]string{"wait", "-n", shops, "--for=create", "pod", "-l", "app=shop", waitTimeout},
	); err != nil {
		return err
	}
	s.explain("The pod waits; its condition names the permission and its provider:")
	condition := `{.status.conditions[?(@.type=="` + podmeta.ConditionAuthorized + `")]`
	if err := s.all(ctx,
		[]string{"wait", "-n", shops, "--for=jsonpath=" + condition + ".reason}=" + podmeta.ReasonPermissionApplying, "pod", "-l", "app=shop", waitTimeout},
		[]string{"get", "pods", "-n", shops},
		[]string{"get", "pods", "-n", shops, "-l", "app=shop", "-o", "jsonpath={.items[0]" + strings.TrimPrefix(condition, "{") + `.message}{"\n"}`},
	); err != nil {
		return err
	}
	s.explain("The permission is granted, and the application starts:")
	if err := s.all(ctx,
		[]string{"wait", "-n", shops, "--for=condition=Ready", "pod", "-l", "app=shop", waitTimeout},
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
	if err := s.checkGrants(ctx, cluster, uid, 1); err != nil {
		return err
	}
	s.explain("The pod is deleted; it is removed after its grants are revoked:")
	if err := s.all(ctx,
		[]string{"delete", "deployment", "shop", "-n", shops},
		[]string{"wait", "-n", shops, "--for=delete", "pod", "-l", "app=shop", waitTimeout},
	); err != nil {
		return err
	}
	return s.checkGrants(ctx, cluster, uid, 0)
}

// checkGrants prints the provider's grants for a pod and checks their number.
func (s *steps) checkGrants(ctx context.Context, cluster *setup.Cluster, uid string, want int) error {
	stats, err := cluster.ProviderStats(ctx)
	if err != nil {
		return err
	}
	grants := stats.OfPod(uid)
	s.print("\n(the grants of the provider for the pod: %d)\n", len(grants))
	for _, g := range grants {
		s.print("  %s for %s\n", g.Permission, g.IP)
	}
	if len(grants) != want {
		return fmt.Errorf("the provider has grants %+v, want %d", grants, want)
	}
	return nil
}
