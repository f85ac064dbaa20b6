package functions

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
)

const (
	// ReleaseAge is how old a release may be that Releases.Recent returns.
	ReleaseAge = time.Second
	// maxReleases is how many are remembered; the one that was used longest ago
	// is forgotten first.
	maxReleases = 1000
)

// Releases reads ChangeWorkloads for wake-ups of single pods: a release has
// many of them in a second, and its object is the largest of ours. Only a
// release that is under way is remembered, so what is remembered never is the
// reason to do nothing. It may be outdated: a batch can be started up to
// ReleaseAge after the order failed or the release was deleted. The call to the
// server, which takes its time, is in a race with these anyway. Who decides
// about the release itself reads it live.
type Releases struct {
	client versioned.Interface
	clock  clock.PassiveClock
	known  *cache.LRUExpireCache // types.NamespacedName to *v1alpha1.ChangeWorkload
}

// NewReleases returns Releases that remember nothing.
func NewReleases(client versioned.Interface, clock clock.PassiveClock) *Releases {
	return &Releases{client: client, clock: clock, known: cache.NewLRUExpireCacheWithClock(maxReleases, clock)}
}

// Recent returns the release as it was at most ReleaseAge ago; recent says that
// it was not read now. One that does not fit the wake-up has to be read Live:
// the wake-up may be about a later release of the same name. Others have the
// same object: it is not to be changed.
func (r *Releases) Recent(ctx context.Context, namespace, name string) (w *v1alpha1.ChangeWorkload, recent bool, err error) {
	if known, ok := r.known.Get(types.NamespacedName{Namespace: namespace, Name: name}); ok {
		return known.(*v1alpha1.ChangeWorkload), true, nil
	}
	w, err = r.Live(ctx, namespace, name)
	return w, false, err
}

// Live reads the release as it is now. It is not to be changed.
func (r *Releases) Live(ctx context.Context, namespace, name string) (*v1alpha1.ChangeWorkload, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	began := r.clock.Now()
	w, err := r.client.AppV1alpha1().ChangeWorkloads(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		r.known.Remove(key)
		return nil, fmt.Errorf("read the release: %w", err)
	}
	if underWay(w) {
		r.known.Add(key, w, ReleaseAge-r.clock.Since(began))
	} else {
		r.known.Remove(key)
	}
	return w, nil
}

// underWay says whether nothing of a release keeps its batches from the server.
func underWay(w *v1alpha1.ChangeWorkload) bool {
	outcome, _ := w.Status.OrderOutcome()
	return w.DeletionTimestamp == nil && w.Spec.Attempt > 0 && w.Status.Phase != v1alpha1.WorkloadFailed &&
		w.Status.Order.Opened() && outcome != v1alpha1.OutcomeFail
}
