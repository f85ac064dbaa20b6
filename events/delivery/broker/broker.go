// Package broker creates senders of events to the Broker that ConfigMap
// config-broker references. The address is in the status of the Broker.
//
// Knative Eventing may be missing. The resolver creates its informer at the first
// lookup and not at process start, and lists the objects first. Without the CRD
// that lookup fails, the sender keeps its queue, and the next lookup tries again.
//
// Required permissions: get, list and watch on the referenced kind in all
// namespaces, because the informer is cluster-wide, and on ConfigMaps of the
// system namespace.
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

// trackingLease is how long the tracker reports changes of the Broker after a
// lookup. Lookups are seconds apart and renew it.
const trackingLease = time.Hour

// tokenFile is where the manifests mount the token for the audience of the Broker.
const tokenFile = "/var/run/secrets/breakwater.dev/broker/token"

// configMapTimeout limits how long the first lookup waits for the ConfigMap. The
// watcher starts after the sender is created and reports an empty ConfigMap until
// then; after this time an empty ConfigMap means that it does not exist.
const configMapTimeout = 2 * time.Second

// NewSender returns a sender to the Broker that the ConfigMap references, and
// follows changes of both. ctx is a context of knative.dev/pkg/injection; cmw must
// not be started yet. If cmw supports defaults, as in sharedmain, the ConfigMap may
// be created later. The caller runs the sender.
func NewSender(ctx context.Context, cmw configmap.Watcher, o delivery.Options) *delivery.Sender {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	f := newFinder(o.Clock)
	target := delivery.NewTarget(o.Clock, f.find)
	f.addresses = resolver.NewURIResolverFromTracker(ctx,
		tracker.New(func(types.NamespacedName) { target.Refresh() }, trackingLease))

	optionalconfig.Watch(cmw, ConfigName, func(cm *corev1.ConfigMap) {
		if err := f.setReference(cm); err != nil {
			logging.FromContext(ctx).Errorw("Invalid reference to the Broker; the previous one stays in use", "error", err)
		}
		target.Refresh()
	})
	return delivery.NewSender(target, o)
}

// parent returns the ConfigMap as the object that tracks the Broker.
func parent() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: v1alpha1.SystemNamespace,
		Name:      ConfigName,
	}}
}

// finder resolves the reference in the ConfigMap to an address.
type finder struct {
	clock     clock.Clock
	addresses *resolver.URIResolver
	parent    *corev1.ConfigMap
	// read is closed when the first ConfigMap with data is read.
	read     chan struct{}
	readOnce sync.Once

	mu  sync.Mutex
	ref duckv1.KReference
	err error
}

func newFinder(c clock.Clock) *finder {
	return &finder{clock: c, parent: parent(), read: make(chan struct{}), err: errAbsent()}
}

// setReference sets the reference from the ConfigMap. An invalid reference is an
// error and does not replace a valid one, so a typing error does not stop releases.
func (f *finder) setReference(cm *corev1.ConfigMap) error {
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

// reference returns the reference. The first calls wait for the ConfigMap.
func (f *finder) reference(ctx context.Context) (duckv1.KReference, error) {
	wait := f.clock.NewTimer(configMapTimeout)
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
	if address.Audience != nil {
		endpoint.TokenFile = tokenFile
	}
	return endpoint, nil
}
