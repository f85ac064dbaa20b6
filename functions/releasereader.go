package functions

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
)

const (
	// ReleaseCacheTTL is the maximum age of releases that ReleaseReader.Recent
	// returns.
	ReleaseCacheTTL = time.Second
	// releaseCacheSize is the size of the LRU cache.
	releaseCacheSize = 1000
)

// ReleaseReader reads ChangeWorkloads for events about batches and pods. A release gets many
// of these in a second, and its object is large, so it is cached.
//
// Only a release that accepts batches is cached or shared. So a cached copy can cause a call too
// many, but never prevents one that is due: a batch can be started up to ReleaseCacheTTL after
// the order check failed or the release was deleted. The same race exists without a cache,
// because the call to the server takes time. Decisions about the release itself use Live.
type ReleaseReader struct {
	client versioned.Interface
	clock  clock.PassiveClock
	cache  *cache.LRUExpireCache // types.NamespacedName to *v1alpha1.ChangeWorkload
	// reads are the reads in progress, by namespace and name. The pods of a release
	// become Ready together, so without this each would read the release.
	reads *singleflight.Group
}

// NewReleaseReader returns a ReleaseReader with an empty cache.
func NewReleaseReader(client versioned.Interface, clock clock.PassiveClock) *ReleaseReader {
	return &ReleaseReader{client: client, clock: clock, cache: cache.NewLRUExpireCacheWithClock(releaseCacheSize, clock), reads: new(singleflight.Group)}
}

// Recent returns the release from the cache (at most ReleaseCacheTTL old), from a read that
// is shared with another caller, or from a read of its own; cached is true in the first two
// cases. If a cached release does not match the wake-up, the caller must read it Live: the
// wake-up may be about a later release of the same name. The object must not be modified.
func (r *ReleaseReader) Recent(ctx context.Context, namespace, name string) (w *v1alpha1.ChangeWorkload, cached bool, err error) {
	if entry, ok := r.cache.Get(types.NamespacedName{Namespace: namespace, Name: name}); ok {
		return entry.(*v1alpha1.ChangeWorkload), true, nil
	}
	read, err, shared := r.reads.Do(namespace+"/"+name, func() (any, error) { return r.Live(ctx, namespace, name) })
	w, _ = read.(*v1alpha1.ChangeWorkload)
	if shared && (err != nil || !acceptsBatches(w)) {
		// The read may have begun before the wake-up, or with a context that has ended.
		w, err = r.Live(ctx, namespace, name)
		return w, false, err
	}
	return w, shared, err
}

// Live reads the release from the API server. The object must not be modified.
func (r *ReleaseReader) Live(ctx context.Context, namespace, name string) (*v1alpha1.ChangeWorkload, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	began := r.clock.Now()
	w, err := r.client.AppV1alpha1().ChangeWorkloads(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		r.cache.Remove(key)
		return nil, fmt.Errorf("read release: %w", err)
	}
	if acceptsBatches(w) {
		r.cache.Add(key, w, ReleaseCacheTTL-r.clock.Since(began))
	} else {
		r.cache.Remove(key)
	}
	return w, nil
}

// acceptsBatches reports whether batches of the release may be sent to the server.
func acceptsBatches(w *v1alpha1.ChangeWorkload) bool {
	return w.DeletionTimestamp == nil && w.Spec.Attempt > 0 && w.Status.Phase != v1alpha1.ReleaseFailed &&
		w.Status.Order.Opened() && !w.Status.OrderCheckFailed()
}
