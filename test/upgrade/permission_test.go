//go:build e2e

package upgrade

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

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
	if err := p.watch(ctx); err != nil {
		return err
	}
	d := builder.Deployment(web, permissionPods)
	d.Annotations = map[string]string{podmeta.PermissionSetAnnotation: "web"}
	d.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](1)
	if _, err := p.kube.AppsV1().Deployments(p.namespace()).Create(ctx, d, metav1.CreateOptions{}); err != nil {
		return err
	}
	return p.awaitGranted(ctx)
}

// watch records all pods of the run.
func (p *permissions) watch(ctx context.Context) error {
	p.seen = chaos.NewGrants()
	factory := informers.NewSharedInformerFactoryWithOptions(p.kube, 0, informers.WithNamespace(p.namespace()))
	observe := func(obj any) {
		if pod, ok := obj.(*corev1.Pod); ok {
			p.seen.Observe(pod)
		}
	}
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: observe, UpdateFunc: func(_, obj any) { observe(obj) }})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return nil
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
		list, err := p.kube.CoreV1().Pods(p.namespace()).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		readyPods := map[string]string{}
		for i := range list.Items {
			if pod := &list.Items[i]; available(pod) {
				readyPods[string(pod.UID)] = pod.Status.PodIP
			}
		}
		if len(list.Items) != permissionPods || len(readyPods) != permissionPods {
			return fmt.Errorf("%d pods exist, %d are ready", len(list.Items), len(readyPods))
		}
		return p.compare(ctx, readyPods)
	})
}

// compare returns an error unless exactly these pods have a grant.
func (p *permissions) compare(ctx context.Context, want map[string]string) error {
	stats, err := p.cluster.ProviderStats(ctx)
	if err != nil {
		return err
	}
	if faults := p.seen.Violations(want, stats.Current); len(faults) > 0 {
		return errors.New(strings.Join(faults, "\n\t"))
	}
	return nil
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
		list, err := p.kube.CoreV1().Pods(p.namespace()).List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d pods exist", len(list.Items))
		}
		return errors.Join(err, p.compare(ctx, nil))
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
