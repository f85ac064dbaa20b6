// Package wiringtest checks the controllers that constructors return.
package wiringtest

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/controller"
)

// CheckRetriesWithin fails the test if the controller retries a key later than after this time, however often it failed.
func CheckRetriesWithin(t *testing.T, most time.Duration, construct func(*testing.T) *controller.Impl) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		queue := construct(t).WorkQueue()
		defer queue.ShutDown()
		key := types.NamespacedName{Name: "key"}
		for range 30 {
			queue.AddRateLimited(key)
			time.Sleep(most)
			synctest.Wait()
			if queue.Len() == 0 {
				t.Fatalf("after %d failures the key is not retried within %s", queue.NumRequeues(key), most)
			}
			item, _ := queue.Get()
			queue.Done(item)
		}
	})
}
