package podpermission

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A new pod waits for its finalizer behind the calls for pods whose permissions are being revoked.
func TestRetriesUseAtMostHalfOfTheCallsToTheCentre(t *testing.T) {
	for _, tc := range []struct {
		pods, retry int
		want        time.Duration
	}{
		{1, 1, 250 * time.Millisecond},
		{1, 3, time.Second},
		{1, 100, 10 * time.Second},
		{20, 1, 250 * time.Millisecond},
		{500, 1, 250 * time.Millisecond},
		{500, 2, 5 * time.Second},
		{500, 100, 10 * time.Second},
		{10_000, 1, 250 * time.Millisecond},
		{10_000, 2, 100 * time.Second},
		{10_000, 100, 100 * time.Second},
	} {
		r, delay := newRetries(), time.Duration(0)
		for range tc.retry {
			for i := range tc.pods {
				_, delay = r.next(types.NamespacedName{Name: fmt.Sprint(i)}, "uid", zero)
			}
		}
		if delay != tc.want {
			t.Errorf("%d pods, retry %d: %s, want %s", tc.pods, tc.retry, delay, tc.want)
		}
	}
}
