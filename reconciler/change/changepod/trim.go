package changepod

import (
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

var _ cache.TransformFunc = trim

// trim drops the managedFields of a ChangePod before it is cached: they take much memory
// and nothing reads them. The API server keeps them, because every write is a patch that
// does not contain them. Other objects are not changed.
func trim(obj any) (any, error) {
	if c, ok := obj.(*v1alpha1.ChangePod); ok {
		c.ManagedFields = nil
	}
	return obj, nil
}
