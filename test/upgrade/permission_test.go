//go:build e2e

package upgrade

import (
	"bytes"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/chaos"
	"github.com/breakwater-dev/breakwater/test/provider"
	"github.com/breakwater-dev/breakwater/test/provider/setup"
)

// permissionPods is the number of pods with a permission set. They run on the real node, because an
// init container waits for the permission.
const permissionPods = 3

// permissions are pods with a permission set, which are deleted and start again.
type permissions struct {
	*fixture
	cluster    *setup.Cluster
	seen       *chaos.Grants
	duplicates int
}

const permissionNamespace = "upgrade-permission"

func (*permissions) namespace() string { return permissionNamespace }

func (p *permissions) begin(ctx context.Context) error {
	var output bytes.Buffer // printed only on errors
	var err error
	if p.cluster, err = setup.Install(ctx, p.kube, root, &output); err != nil {
		return fmt.Errorf("install the provider: %w: %s", err, output.Bytes())
	}
	if err := p.cluster.Register(ctx, setup.WebObjects()...); err != nil {
		return err
	}
	if err := p.cluster.SetFaults(ctx, provider.Faults{Delay: 50, DecideAfter: 700}); err != nil {
		return err
	}
	stats, err := p.cluster.ProviderStats(ctx)
	if err != nil {
		return err
	}
	p.duplicates = stats.Duplicates
	if err := p.newNamespace(ctx, p.namespace(), map[string]string{podmeta.Label: podmeta.LabelEnabled}); err != nil {
		return err
	}
	p.seen = chaos.NewGrants()
	if err := p.seen.Watch(ctx, p.kube, p.namespace()); err != nil {
		return err
	}
	d := builder.Deployment(web, permissionPods)
	d.Annotations = map[string]string{podmeta.PermissionSetAnnotation: "web"}
	d.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(1))
	if _, err := p.kube.AppsV1().Deployments(p.namespace()).Create(ctx, d, metav1.CreateOptions{}); err != nil {
		return err
	}
	return p.awaitGranted(ctx)
}

// during replaces a pod when all pods have their permission: so an application is always in progress.
func (p *permissions) during(ctx context.Context, upgraded <-chan struct{}) error {
	for last := false; !last; {
		last = closed(upgraded)
		list, err := p.kube.CoreV1().Pods(p.namespace()).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if err := p.kube.CoreV1().Pods(p.namespace()).Delete(ctx, list.Items[0].Name, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("delete a pod: %w", err)
		}
		if err := p.awaitGranted(ctx); err != nil {
			return err
		}
	}
	return nil
}

// awaitGranted waits until all pods are ready and exactly these pods have a grant.
func (p *permissions) awaitGranted(ctx context.Context) error {
	return await(ctx, "exactly the ready pods have grants", func(ctx context.Context) error {
		return p.seen.Check(ctx, p.cluster, p.namespace(), permissionPods)
	})
}

// end checks that all grants are revoked with their pods, and that none was given twice.
func (p *permissions) end(ctx context.Context) error {
	if err := p.cluster.SetFaults(ctx, provider.Faults{}); err != nil {
		return err
	}
	scale := []byte(`{"spec":{"replicas":0}}`)
	if _, err := p.kube.AppsV1().Deployments(p.namespace()).Patch(ctx, web, types.MergePatchType, scale, metav1.PatchOptions{}); err != nil {
		return err
	}
	err := await(ctx, "the pods and their grants are removed", func(ctx context.Context) error {
		return p.seen.Check(ctx, p.cluster, p.namespace(), 0)
	})
	if err != nil {
		return err
	}
	stats, err := p.cluster.ProviderStats(ctx)
	if err != nil {
		return err
	}
	p.log("%s: %d pods had grants", p.namespace(), p.seen.Len())
	if doubled := stats.Duplicates - p.duplicates; doubled > 0 {
		return fmt.Errorf("%d grants were doubled", doubled)
	}
	return nil
}
