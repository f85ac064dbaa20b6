//go:build e2e

package upgrade

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	client "github.com/breakwater-dev/breakwater/client/clientset/versioned/typed/change/v1alpha1"
	policy "github.com/breakwater-dev/breakwater/client/clientset/versioned/typed/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/chaos"
	"github.com/breakwater-dev/breakwater/test/e2e/clients"
	"github.com/breakwater-dev/breakwater/test/e2e/serverdouble"
	"github.com/breakwater-dev/breakwater/test/e2e/testnamespace"
	"github.com/breakwater-dev/breakwater/test/poll"
)

const (
	// upgradeLabel is a label of all objects that a run creates.
	upgradeLabel = "test.breakwater.dev/upgrade"
	// web is the name of the workload of each namespace.
	web = "web"
	// within is the time limit of a step.
	within = 3 * time.Minute
)

// fixture is the cluster with the double of the AlterShield server.
type fixture struct {
	kube    kubernetes.Interface
	change  client.AppV1alpha1Interface
	policy  policy.PolicyV1alpha1Interface
	dynamic dynamic.Interface
	double  *serverdouble.Client
	log     func(format string, args ...any)
}

func connect(logf func(format string, args ...any)) (*fixture, error) {
	c, err := clients.Connect()
	if err != nil {
		return nil, err
	}
	return &fixture{
		kube: c.Kube, change: c.Breakwater.AppV1alpha1(), policy: c.Breakwater.PolicyV1alpha1(), dynamic: c.Dynamic, double: serverdouble.New(nil),
		log: func(format string, args ...any) { logf(time.Now().Format("15:04:05.000 ")+format, args...) },
	}, nil
}

func (f *fixture) observer() *chaos.Observer {
	return &chaos.Observer{Kube: f.kube, Change: f.change, Double: f.double}
}

// settings are the OpsConfigInfos of a run. A verdict that is lost makes a batch wait longer than
// the run; so the run fails, and the batch does not count as unjudged.
func settings() map[v1alpha1.ConfigType]string {
	return map[v1alpha1.ConfigType]string{v1alpha1.ConfigPreTimeout: limit.String(), v1alpha1.ConfigPostTimeout: limit.String()}
}

// configure installs the double, configures Breakwater to use it, and sets the settings.
func (f *fixture) configure(ctx context.Context) error {
	if err := serverdouble.Install(ctx, f.kube, os.Stderr); err != nil {
		return err
	}
	if err := f.double.Reset(ctx); err != nil {
		return err
	}
	for kind, content := range settings() {
		_, err := f.change.OpsConfigInfoes(v1alpha1.SystemNamespace).Create(ctx, &v1alpha1.OpsConfigInfo{
			ObjectMeta: metav1.ObjectMeta{Name: "upgrade-" + string(kind), Labels: map[string]string{upgradeLabel: "true"}},
			Spec:       v1alpha1.OpsConfigInfoSpec{Type: kind, Content: content, Enable: true, Remark: "set during an upgrade"},
		}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("set %s: %w", kind, err)
		}
	}
	return serverdouble.Configure(ctx, f.kube)
}

// newNamespace creates a namespace with these labels.
func (f *fixture) newNamespace(ctx context.Context, name string, labels map[string]string) error {
	labels = maps.Clone(labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[upgradeLabel] = "true"
	_, err := testnamespace.Create(ctx, f.kube, metav1.ObjectMeta{Name: name, Labels: labels})
	return err
}

// optedIn are the labels of a namespace whose releases are judged.
func optedIn() map[string]string {
	return map[string]string{v1alpha1.NamespaceLabel: v1alpha1.NamespaceEnabled}
}

// cleanUp deletes the objects of this run or of a killed one.
func (f *fixture) cleanUp(ctx context.Context) error {
	ours := metav1.ListOptions{LabelSelector: upgradeLabel}
	err := errors.Join(
		serverdouble.Unconfigure(ctx, f.kube),
		f.change.OpsConfigInfoes(v1alpha1.SystemNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, ours),
		f.kube.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, ours),
	)
	left, listed := f.kube.CoreV1().Namespaces().List(ctx, ours)
	if listed != nil {
		return errors.Join(err, listed)
	}
	for i := range left.Items {
		deleted := testnamespace.Delete(ctx, f.kube, left.Items[i].Name)
		if deleted != nil && !apierrs.IsNotFound(deleted) && !apierrs.IsConflict(deleted) {
			err = errors.Join(err, deleted)
		}
	}
	return err
}

// awaitCleanup waits until deleted namespaces are removed, because each run has the same names.
func (f *fixture) awaitCleanup(ctx context.Context) error {
	return await(ctx, "the namespaces of an earlier run are removed", func(ctx context.Context) error {
		left, err := f.kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: upgradeLabel})
		if err == nil && len(left.Items) > 0 {
			err = fmt.Errorf("%d are left", len(left.Items))
		}
		return err
	})
}

// callErrors reads the metrics of the API server; see CallErrors.
func (f *fixture) callErrors(ctx context.Context, webhooks map[string]bool) (map[string]int, error) {
	raw, err := f.kube.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the metrics of the API server: %w", err)
	}
	return CallErrors(bytes.NewReader(raw), webhooks)
}

// systemPods returns the pods of the Deployments of Breakwater. Those of functions are not
// included: Knative removes the pods of an old Revision later.
func (f *fixture) systemPods(ctx context.Context) (map[string]bool, error) {
	list, err := f.kube.CoreV1().Pods(v1alpha1.SystemNamespace).List(ctx, metav1.ListOptions{LabelSelector: "!serving.knative.dev/service"})
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			out[list.Items[i].Name] = true
		}
	}
	return out, nil
}

// checkReplaced returns an error if pods of the earlier version serve after the wait for the new one.
func (f *fixture) checkReplaced(ctx context.Context, before map[string]bool) error {
	now, err := f.systemPods(ctx)
	if err != nil {
		return err
	}
	maps.DeleteFunc(now, func(name string, _ bool) bool { return !before[name] })
	if len(now) > 0 {
		return fmt.Errorf("the upgrade is ready, and pods of the earlier version serve: %v", slices.Sorted(maps.Keys(now)))
	}
	return nil
}

// await polls the condition until it returns nil; its error describes the current state.
func await(ctx context.Context, what string, condition func(context.Context) error) error {
	return poll.Until(ctx, 300*time.Millisecond, within, what, condition)
}

// closed reports whether a channel is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// awaitClosed waits until a channel is closed.
func awaitClosed(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
