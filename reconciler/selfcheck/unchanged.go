package selfcheck

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

// unchanged keeps what was read from objects. An object is read again only if its resourceVersion
// has changed: CRDs are large, and a check reads all guards every ten seconds.
type unchanged struct {
	objects metadata.Interface
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
}

func newUnchanged(objects metadata.Interface) *unchanged {
	return &unchanged{objects: objects, last: map[guardRef]version{}}
}

// readChanged returns what get returned for the object, and calls get unless the object is unchanged. get
// also returns the resourceVersion. An error and a missing object are not kept.
func readChanged[T any](ctx context.Context, u *unchanged, ref guardRef, get func() (read T, resourceVersion string, err error)) (T, error) {
	if last, known := u.last[ref]; known && u.resourceVersion(ctx, ref) == last.resourceVersion {
		return last.read.(T), nil
	}
	delete(u.last, ref)
	read, resourceVersion, err := get()
	if err == nil && resourceVersion != "" {
		u.last[ref] = version{resourceVersion, read}
	}
	return read, err
}

// resourceVersion returns that of the object from the cache of the API server, or "" if it cannot be read.
func (u *unchanged) resourceVersion(ctx context.Context, ref guardRef) string {
	found, err := u.objects.Resource(ref.resource).Get(ctx, ref.name, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return ""
	}
	return found.ResourceVersion
}
