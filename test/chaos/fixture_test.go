//go:build e2e

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	versioned "github.com/breakwater-dev/breakwater/client/clientset/versioned"
	client "github.com/breakwater-dev/breakwater/client/clientset/versioned/typed/change/v1alpha1"
	policy "github.com/breakwater-dev/breakwater/client/clientset/versioned/typed/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/e2e/clients"
	"github.com/breakwater-dev/breakwater/test/e2e/faultinjection"
	"github.com/breakwater-dev/breakwater/test/e2e/serverdouble"
	"github.com/breakwater-dev/breakwater/test/poll"
)

// chaosLabel is a label of all objects that a run creates.
const chaosLabel = "test.breakwater.dev/chaos"

// fixture is the cluster with the double.
type fixture struct {
	kube    kubernetes.Interface
	clients versioned.Interface
	change  client.AppV1alpha1Interface
	policy  policy.PolicyV1alpha1Interface
	dynamic dynamic.Interface
	double  *serverdouble.Client
}

func connect() (*fixture, error) {
	c, err := clients.Connect()
	if err != nil {
		return nil, err
	}
	return &fixture{kube: c.Kube, clients: c.Breakwater, change: c.Breakwater.AppV1alpha1(), policy: c.Breakwater.PolicyV1alpha1(), dynamic: c.Dynamic, double: serverdouble.New(nil)}, nil
}

// await polls the condition until it returns nil; its error describes the
// current state.
func await(ctx context.Context, within time.Duration, what string, condition func(context.Context) error) error {
	return poll.Until(ctx, 300*time.Millisecond, within, what, condition)
}

// settings are the OpsConfigInfos during a run. After a lost callback a release
// waits until these timeouts expire. They are longer than the longest recovery,
// that of a killed controller.
func settings() map[v1alpha1.ConfigType]string {
	return map[v1alpha1.ConfigType]string{
		v1alpha1.ConfigPreTimeout:    "90s",
		v1alpha1.ConfigPostTimeout:   "60s",
		v1alpha1.ConfigWaitThreshold: "10s",
		// With the default, a check that times out would wait for a person.
		v1alpha1.ConfigNoVerdictContradicted: string(v1alpha1.NoVerdictPass),
	}
}

// configure resets the double and configures Breakwater to use it with these
// settings.
func (f *fixture) configure(ctx context.Context) error {
	if err := f.double.Reset(ctx); err != nil {
		return err
	}
	for kind, content := range settings() {
		_, err := f.change.OpsConfigInfoes(v1alpha1.SystemNamespace).Create(ctx, &v1alpha1.OpsConfigInfo{
			ObjectMeta: metav1.ObjectMeta{Name: "chaos-" + string(kind), Labels: map[string]string{chaosLabel: "true"}},
			Spec:       v1alpha1.OpsConfigInfoSpec{Type: kind, Content: content, Enable: true, Remark: "set during a chaos run"},
		}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("set %s: %w", kind, err)
		}
	}
	if err := f.double.SetSecondFinish(ctx, secondFinish); err != nil {
		return err
	}
	return serverdouble.Configure(ctx, f.kube)
}

// branch is the OpsConfigInfo of batches, and before is the annotation with its
// original spec.
const branch, before = "branch", chaosLabel

// setBatches changes the batch size and saves the original setting.
func (f *fixture) setBatches(ctx context.Context, spec v1alpha1.OpsConfigInfoSpec) error {
	infos := f.change.OpsConfigInfoes(v1alpha1.SystemNamespace)
	now, err := infos.Get(ctx, branch, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if _, kept := now.Annotations[before]; !kept {
		raw, err := json.Marshal(now.Spec)
		if err != nil {
			return err
		}
		metav1.SetMetaDataAnnotation(&now.ObjectMeta, before, string(raw))
	}
	now.Spec = spec
	_, err = infos.Update(ctx, now, metav1.UpdateOptions{})
	return err
}

// resetBatches undoes setBatches.
func (f *fixture) resetBatches(ctx context.Context) error {
	infos := f.change.OpsConfigInfoes(v1alpha1.SystemNamespace)
	now, err := infos.Get(ctx, branch, metav1.GetOptions{})
	if err != nil {
		return err
	}
	raw, kept := now.Annotations[before]
	if !kept {
		return nil
	}
	if err := json.Unmarshal([]byte(raw), &now.Spec); err != nil {
		return err
	}
	delete(now.Annotations, before)
	_, err = infos.Update(ctx, now, metav1.UpdateOptions{})
	return err
}

// cleanUp deletes the objects of this run or of a killed one.
func (f *fixture) cleanUp(ctx context.Context) error {
	ours := metav1.ListOptions{LabelSelector: chaosLabel}
	err := errors.Join(serverdouble.Unconfigure(ctx, f.kube), f.resetBatches(ctx), f.patchPermissions(ctx, defaultPermissions))
	infos := f.change.OpsConfigInfoes(v1alpha1.SystemNamespace)
	err = errors.Join(err, infos.DeleteCollection(ctx, metav1.DeleteOptions{}, ours))
	left, listed := f.kube.CoreV1().Namespaces().List(ctx, ours)
	if listed != nil {
		return errors.Join(err, listed)
	}
	for i := range left.Items {
		deleted := f.kube.CoreV1().Namespaces().Delete(ctx, left.Items[i].Name, metav1.DeleteOptions{})
		if deleted != nil && !apierrs.IsNotFound(deleted) && !apierrs.IsConflict(deleted) {
			err = errors.Join(err, deleted)
		}
	}
	return err
}

// awaitCleanup waits until the deleted namespaces are removed, because a run
// with the same seed uses the same names.
func (f *fixture) awaitCleanup(ctx context.Context) error {
	return await(ctx, 4*time.Minute, "the namespaces of an earlier run are removed", func(ctx context.Context) error {
		left, err := f.kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: chaosLabel})
		if err == nil && len(left.Items) > 0 {
			err = fmt.Errorf("%d are left", len(left.Items))
		}
		return err
	})
}

// awaitRecovery waits until every target is ready again.
func (f *fixture) awaitRecovery(ctx context.Context) error {
	const within = 4 * time.Minute
	for _, namespace := range []string{v1alpha1.SystemNamespace, faultinjection.Eventing, serverdouble.Namespace} {
		err := await(ctx, within, "the Deployments of "+namespace+" are available", func(ctx context.Context) error {
			list, err := f.kube.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{LabelSelector: "!serving.knative.dev/service"})
			if err != nil {
				return err
			}
			for i := range list.Items {
				if d := &list.Items[i]; d.Status.AvailableReplicas < *d.Spec.Replicas {
					return fmt.Errorf("%s has %d of %d", d.Name, d.Status.AvailableReplicas, *d.Spec.Replicas)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return await(ctx, within, "all functions and Triggers are ready", func(ctx context.Context) error {
		return faultinjection.FunctionsReady(ctx, f.dynamic)
	})
}
