// Package broker finds the Broker that events are sent to: the object that
// ConfigMap config-broker refers to, by its address in status.
//
// A cluster without Knative Eventing is a good one. The resolver makes its
// informer when the reference is looked up and not when the process starts,
// and asks with a plain list first: where the CRD is not installed that is an
// error of this look-up, the sender keeps its queue, and the next look-up
// tries again. It runs in a goroutine of its own, because its first success
// waits for the informer's cache.
//
// What it needs: get, list and watch on the referenced kind in all namespaces
// (the informer is not bound to one), and on ConfigMaps of the system namespace.
package broker

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	duckv1 "knative.dev/pkg/apis/duck/v1"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/resolver"
	"knative.dev/pkg/tracker"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events/delivery"
	"github.com/breakwater-dev/breakwater/internal/optionalconfig"
)

// lease is how long the tracker remembers that a change of the Broker matters
// to us. Each look-up renews it, and they are seconds apart.
const lease = time.Hour

// firstRead is how long the first look-up waits for the ConfigMap. The watcher
// is started after the sender was made, and stands in for what it has not read
// yet with nothing; only later does nothing mean that the ConfigMap is absent.
const firstRead = 2 * time.Second

// NewSender returns a sender to the Broker that the ConfigMap refers to, and
// follows both. ctx is that of knative.dev/pkg/injection; cmw must not have
// been started. A ConfigMap that does not exist is waited for, if cmw can
// (those of sharedmain can). The caller runs the sender.
func NewSender(ctx context.Context, cmw configmap.Watcher, o delivery.Options) (*delivery.Sender, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	f := newFinder(o.Clock)
	target := delivery.NewTarget(o.Clock, f.find)
	f.addresses = resolver.NewURIResolverFromTracker(ctx,
		tracker.New(func(types.NamespacedName) { target.Poke() }, lease))

	optionalconfig.Watch(cmw, ConfigName, func(cm *corev1.ConfigMap) {
		if err := f.refer(cm); err != nil {
			logging.FromContext(ctx).Errorw("The reference to the Broker was left as it was", "error", err)
		}
		target.Poke()
	})
	return delivery.NewSender(target, o)
}

// parent is the ConfigMap as the tracker knows it.
func parent() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: v1alpha1.SystemNamespace,
		Name:      ConfigName,
	}}
}

// finder finds the address of what the ConfigMap refers to.
type finder struct {
	clock     clock.Clock
	addresses *resolver.URIResolver
	parent    *corev1.ConfigMap
	// read is closed when a ConfigMap with content was read.
	read     chan struct{}
	readOnce sync.Once

	mu  sync.Mutex
	ref duckv1.KReference
	err error
}

func newFinder(c clock.Clock) *finder {
	return &finder{clock: c, parent: parent(), read: make(chan struct{}), err: errAbsent()}
}

// refer takes the reference from the ConfigMap. One that is wrong is returned
// as an error and does not take the place of one that was right: a slip of the
// pen must not stop a release.
func (f *finder) refer(cm *corev1.ConfigMap) error {
	ref, err := parse(cm)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(cm.Data) > 0 {
		defer f.readOnce.Do(func() { close(f.read) })
		if err != nil && f.err == nil {
			return err
		}
	}
	f.ref, f.err = ref, err
	return nil
}

// reference returns what refer took, and at first waits for it.
func (f *finder) reference(ctx context.Context) (duckv1.KReference, error) {
	wait := f.clock.NewTimer(firstRead)
	defer wait.Stop()
	select {
	case <-f.read:
	case <-wait.C():
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ref, f.err
}

// find implements delivery.Resolve.
func (f *finder) find(ctx context.Context) (delivery.Endpoint, error) {
	ref, err := f.reference(ctx)
	if err != nil {
		return delivery.Endpoint{}, err
	}
	address, err := f.addresses.AddressableFromDestinationV1(ctx, duckv1.Destination{Ref: &ref}, f.parent)
	if err != nil {
		return delivery.Endpoint{}, fmt.Errorf("resolve %s %s/%s: %w", ref.Kind, ref.Namespace, ref.Name, err)
	}
	endpoint := delivery.Endpoint{URL: address.URL.String()}
	if address.CACerts != nil {
		endpoint.CACerts = *address.CACerts
	}
	return endpoint, nil
}
