package selfcheck

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
)

// readAgainAfter is when an unchanged object is read again. The cache of the API server, which has its
// resourceVersion, may lag.
const readAgainAfter = time.Minute

// unchanged keeps what was read from objects. Until readAgainAfter, an object is read again only if its
// resourceVersion has changed: CRDs are large, and a check reads all guards every ten seconds.
type unchanged struct {
	objects metadata.Interface
	clock   clock.PassiveClock
	last    map[guardRef]version
}

// guardRef names a cluster-scoped object.
type guardRef struct {
	resource schema.GroupVersionResource
	name     string
}

// version is what was read from an object at a resourceVersion.
type version struct {
	resourceVersion string
	read            any
	at              time.Time
}

func newUnchanged(objects metadata.Interface, c clock.PassiveClock) *unchanged {
	return &unchanged{objects: objects, clock: c, last: map[guardRef]version{}}
}

// readChanged returns what read finds in an object, and calls get and read unless the object is unchanged. An
// error and a missing object are not kept.
func readChanged[O metav1.Object, T any](ctx context.Context, u *unchanged, ref guardRef,
	get func(context.Context, string, metav1.GetOptions) (O, error), read func(O) T,
) (found T, err error) {
	now := u.clock.Now()
	if last, known := u.last[ref]; known && now.Sub(last.at) < readAgainAfter && u.resourceVersion(ctx, ref) == last.resourceVersion {
		return last.read.(T), nil
	}
	delete(u.last, ref)
	o, err := get(ctx, ref.name, metav1.GetOptions{})
	if err != nil {
		return found, err
	}
	found = read(o)
	if o.GetResourceVersion() != "" {
		u.last[ref] = version{o.GetResourceVersion(), found, now}
	}
	return found, nil
}

// resourceVersion returns that of the object from the cache of the API server, or "" if it cannot be read.
func (u *unchanged) resourceVersion(ctx context.Context, ref guardRef) string {
	found, err := u.objects.Resource(ref.resource).Get(ctx, ref.name, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return ""
	}
	return found.ResourceVersion
}
