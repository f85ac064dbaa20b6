package workloadinformer

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// ownDomains are the domain suffixes of annotations that Breakwater reads. Others, some of
// which hold a copy of the whole object, are not cached.
var ownDomains = []string{"antgroup.com", "alipay.com", "breakwater.dev"}

// transform converts each object to a Workload before it is cached. A malformed
// object keeps only its metadata and is ignored: an error here would keep all
// objects of its kind out of the cache.
func (w *Watch) transform(k workload.Kind) cache.TransformFunc {
	return func(obj any) (any, error) {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return obj, nil // a tombstone, or an object that was transformed before
		}
		u.SetManagedFields(nil)
		trimAnnotations(u)
		read, err := workload.FromUnstructured(k, u)
		if err != nil {
			w.logger.Errorw("a workload is malformed and is not judged",
				"kind", k.String(), "key", cache.MetaObjectToName(u).String(), "error", err)
			return &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "metadata": u.Object["metadata"],
			}}, nil
		}
		return read, nil
	}
}

func trimAnnotations(u *unstructured.Unstructured) {
	all := u.GetAnnotations()
	kept := make(map[string]string, len(all))
	for key, value := range all {
		if isOwn(key) {
			kept[key] = value
		}
	}
	if len(kept) == 0 {
		kept = nil
	}
	u.SetAnnotations(kept)
}

func isOwn(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return slices.ContainsFunc(ownDomains, func(end string) bool { return strings.HasSuffix(domain, end) })
}
