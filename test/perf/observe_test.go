//go:build bench

package perf

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/e2e/serverdouble"
)

// installServerDouble installs the server's double and configures it. It passes every check immediately.
func (b *benchmark) installServerDouble(ctx context.Context, t *testing.T) {
	t.Helper()
	if err := serverdouble.Install(ctx, b.kube, os.Stderr); err != nil {
		t.Fatal(err)
	}
	if err := b.double.Reset(ctx); err != nil {
		t.Fatal(err)
	}
	if err := serverdouble.Configure(ctx, b.kube); err != nil {
		t.Fatal(err)
	}
}

// begin starts another release of a Deployment.
func (b *benchmark) begin(ctx context.Context, namespace, name string) error {
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, builder.Marker, time.Now().Format(time.RFC3339Nano))
	_, err := b.kube.AppsV1().Deployments(namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// observeJudging records what watches show of new pods that have benchLabel, and of new releases, until ctx ends.
func (b *benchmark) observeJudging(ctx context.Context, t *testing.T) *judging {
	t.Helper()
	j := newJudging()
	pods, batches, releases := b.kube.CoreV1().Pods(""), b.change.AppV1alpha1().ChangePods(""), b.change.AppV1alpha1().ChangeWorkloads("")
	follow(ctx, t, benchLabel, pods.List, pods.Watch, j.seePod)
	follow(ctx, t, "", batches.List, batches.Watch, j.seeBatch)
	follow(ctx, t, "", releases.List, releases.Watch, j.seeRelease)
	return j
}

// follow passes the changes of objects from now on to seen, with the time at which their event arrived, until ctx
// ends. A busy API server may end the watch; it then begins again after the last event.
func follow[T any, L metav1.ListInterface](
	ctx context.Context, t *testing.T, selector string,
	list func(context.Context, metav1.ListOptions) (L, error),
	watchFrom func(context.Context, metav1.ListOptions) (watch.Interface, error),
	seen func(watch.EventType, T, time.Time),
) {
	t.Helper()
	now, err := list(ctx, metav1.ListOptions{LabelSelector: selector, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(ctx)
	events, err := watchtools.NewRetryWatcherWithContext(ctx, now.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = selector
			return watchFrom(ctx, o)
		},
	})
	if err != nil {
		stop()
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range events.ResultChan() {
			if o, ok := e.Object.(T); ok {
				seen(e.Type, o, time.Now())
			} else if ctx.Err() == nil {
				t.Errorf("a watch failed: %v", e.Object)
			}
		}
		if ctx.Err() == nil {
			t.Error("a watch ended before the measurement")
		}
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
}
