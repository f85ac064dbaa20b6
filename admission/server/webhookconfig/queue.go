package webhookconfig

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/controller"
)

// RetryWithin is the longest time until a configuration is written again after errors. It is less than the time
// for which replicas accept the paths of a replaced certificate.
const RetryWithin = 10 * time.Second

// EnqueueOnChange enqueues the keys whenever an object that passes the filter changes.
func EnqueueOnChange(impl *controller.Impl, in cache.SharedIndexInformer, filter func(any) bool, keys ...types.NamespacedName) error {
	_, err := in.AddEventHandler(cache.FilteringResourceEventHandler{
		FilterFunc: filter,
		Handler: controller.HandleAll(func(any) {
			for _, key := range keys {
				impl.EnqueueKey(key)
			}
		}),
	})
	if err != nil {
		return fmt.Errorf("add event handler: %w", err)
	}
	return nil
}
