package callback

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
)

// pageSize is the maximum number of whole ChangePods that a list keeps in memory.
const pageSize = 500

// hasNode selects the ChangePods that the cache is asked for: those with a node. Most writes of a ChangePod are before
// the server has answered with its node.
const hasNode = nodeField + "!="

// newListWatch returns the source of the cache. It lists only if the API server does not
// support streaming lists (WatchList): these trim each ChangePod when it arrives.
func newListWatch(client versioned.Interface) cache.ListerWatcher {
	batches := client.AppV1alpha1().ChangePods(metav1.NamespaceAll)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			return listTrimmed(ctx, batches.List)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = hasNode
			return batches.Watch(ctx, options)
		},
	}, client)
}

// listTrimmed returns all ChangePods with a node, trimmed. It trims each page before it requests the
// next one. It names no resourceVersion, because for resourceVersion 0, which an informer
// names, the API server ignores the limit and answers with all objects. An expired page is
// an error, after which the informer lists again.
func listTrimmed(ctx context.Context, list func(context.Context, metav1.ListOptions) (*v1alpha1.ChangePodList, error)) (*v1alpha1.ChangePodList, error) {
	all := &v1alpha1.ChangePodList{}
	options := metav1.ListOptions{Limit: pageSize, FieldSelector: hasNode}
	for {
		page, err := list(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("list ChangePods: %w", err)
		}
		for i := range page.Items {
			all.Items = append(all.Items, *trimmed(&page.Items[i]))
		}
		all.ListMeta = metav1.ListMeta{ResourceVersion: page.ResourceVersion}
		if page.Continue == "" {
			return all, nil
		}
		options.Continue = page.Continue
	}
}
