//go:build e2e

package chaos

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/provider"
	"github.com/breakwater-dev/breakwater/test/provider/setup"
)

const (
	// permissionPods is the number of pods with a permission set. They run on
	// the real node, because an init container waits for the permission.
	permissionPods = 3
	// minReplaced is the minimum number of pods that were deleted and replaced in a run.
	minReplaced = 3
	// grantedWithin and revokedWithin are time limits after the faults.
	grantedWithin, revokedWithin = 3 * time.Minute, 2 * time.Minute
	// configPermission is the ConfigMap of the settings.
	configPermission = "config-permission"
	// shortPermissions are settings for a run, defaultPermissions those of
	// config/permission.
	shortPermissions   = `{"data":{"revoke-deadline":"60s","backoff-duration":"6s","backoff-jitter":"0","backoff-cap":"1m"}}`
	defaultPermissions = `{"data":{"revoke-deadline":"5m","backoff-duration":"2m","backoff-jitter":"1.0","backoff-cap":"1h"}}`
)

// permissionLoop deletes pods with a permission set; their Deployment replaces
// them.
type permissionLoop struct {
	*fixture
	namespace string
	seed      uint64
	log       func(format string, args ...any)
	cluster   *setup.Cluster
	// prepared is closed when all pods have a grant.
	prepared   chan struct{}
	seen       *Grants
	duplicates int
}

// prepare installs the double of the provider, and creates the pods.
func (p *permissionLoop) prepare(ctx context.Context) error {
	var output bytes.Buffer // printed only on errors
	var err error
	if p.cluster, err = setup.Install(ctx, p.kube, "../..", &output); err != nil {
		return fmt.Errorf("install the provider: %w: %s", err, output.String())
	}
	if err := p.patchPermissions(ctx, shortPermissions); err != nil {
		return err
	}
	if err := p.cluster.Register(ctx, setup.WebObjects()...); err != nil {
		return err
	}
	if err := p.cluster.SetFaults(ctx, provider.Faults{Delay: 50, DecideAfter: 700, Lose: 0.1}); err != nil {
		return err
	}
	stats, err := p.cluster.ProviderStats(ctx)
	if err != nil {
		return err
	}
	p.duplicates = stats.Duplicates
	_, err = p.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: p.namespace, Labels: map[string]string{chaosLabel: "true", podmeta.Label: podmeta.LabelEnabled},
	}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create namespace %s: %w", p.namespace, err)
	}
	d := builder.Deployment(name, permissionPods)
	d.Annotations = map[string]string{podmeta.PermissionSetAnnotation: "web"}
	d.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(1))
	if _, err := p.kube.AppsV1().Deployments(p.namespace).Create(ctx, d, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create a Deployment with a permission set: %w", err)
	}
	if err := p.awaitGranted(ctx); err != nil {
		return err
	}
	close(p.prepared)
	return nil
}

func (f *fixture) patchPermissions(ctx context.Context, patch string) error {
	_, err := f.kube.CoreV1().ConfigMaps(v1alpha1.SystemNamespace).Patch(ctx, configPermission, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("patch %s: %w", configPermission, err)
	}
	return nil
}

// run deletes pods until ctx ends.
func (p *permissionLoop) run(ctx context.Context) {
	r := rand.New(rand.NewPCG(p.seed, 1<<35))
	for sleep(ctx, 4*time.Second+time.Duration(r.Int64N(int64(6*time.Second)))) {
		list, err := p.kube.CoreV1().Pods(p.namespace).List(ctx, metav1.ListOptions{})
		if err == nil {
			pods := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
			if len(pods) > 0 {
				err = p.kube.CoreV1().Pods(p.namespace).Delete(ctx, pods[r.IntN(len(pods))].Name, metav1.DeleteOptions{})
			}
		}
		if err != nil && ctx.Err() == nil {
			p.log("delete a pod of %s: %v", p.namespace, err)
		}
	}
}

// awaitGranted waits until all pods are ready and exactly these pods have a grant.
func (p *permissionLoop) awaitGranted(ctx context.Context) error {
	return await(ctx, grantedWithin, "exactly the pods of "+p.namespace+" have grants", func(ctx context.Context) error {
		return p.seen.Check(ctx, p.cluster, p.namespace, permissionPods)
	})
}

// check checks the grants of the last pods, deletes the pods, and checks that
// all grants are revoked and none was given twice.
func (p *permissionLoop) check(ctx context.Context) error {
	if err := p.cluster.SetFaults(ctx, provider.Faults{}); err != nil {
		return err
	}
	if err := p.awaitGranted(ctx); err != nil {
		return err
	}
	scale := []byte(`{"spec":{"replicas":0}}`)
	if _, err := p.kube.AppsV1().Deployments(p.namespace).Patch(ctx, name, types.MergePatchType, scale, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("scale the Deployment of %s: %w", p.namespace, err)
	}
	err := await(ctx, revokedWithin, "the pods of "+p.namespace+" and their grants are removed", func(ctx context.Context) error {
		return p.seen.Check(ctx, p.cluster, p.namespace, 0)
	})
	if err != nil {
		return err
	}
	stats, err := p.cluster.ProviderStats(ctx)
	if err != nil {
		return err
	}
	p.log("%s: there were %d pods", p.namespace, p.seen.Len())
	if replaced := p.seen.Len() - permissionPods; replaced < minReplaced {
		return fmt.Errorf("%d pods were replaced during the faults, want at least %d", replaced, minReplaced)
	}
	if doubled := stats.Duplicates - p.duplicates; doubled > 0 {
		return fmt.Errorf("%d grants were doubled", doubled)
	}
	return nil
}
