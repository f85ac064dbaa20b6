package protection

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/admission/protection/budget"
	"github.com/breakwater-dev/breakwater/internal/webhookpeers"
)

func TestAReplicaLeavesRequestsToAnEarlierOneUntilItKnowsTheController(t *testing.T) {
	const self, other = "webhook-1", "webhook-2"
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		// acquired is how long before the start the controller acquired the Lease; 0 without a limit of its age.
		acquired time.Duration
		// replicas are the ready replicas.
		replicas []string
		unread   bool
		after    time.Duration
		want     bool
	}{
		"the controller leads for long":                 {time.Hour, []string{other}, false, time.Second, true},
		"acquired just now":                             {time.Second, []string{other}, false, time.Second, false},
		"acquired just now, no other replica":           {time.Second, nil, false, time.Second, true},
		"acquired just now, only this replica is ready": {time.Second, []string{self}, false, time.Second, true},
		"the Leases are not read yet":                   {time.Hour, nil, true, time.Second, false},
		"the Leases cannot be read":                     {time.Hour, []string{other}, true, 20 * time.Second, true},
		"the controller ended":                          {time.Second, []string{other}, false, 20 * time.Second, true},
		"no limit":                                      {0, []string{other}, true, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			now := clocktesting.NewFakePassiveClock(start)
			index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
			slice := &discoveryv1.EndpointSlice{
				ObjectMeta: metav1.ObjectMeta{Name: "webhook", Namespace: "system"},
				Ports:      []discoveryv1.EndpointPort{{Name: new(webhookpeers.Port), Port: new(int32(8443))}},
			}
			for _, pod := range tc.replicas {
				slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
					Addresses: []string{"10.0.0.1"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: pod},
				})
			}
			if err := index.Add(slice); err != nil {
				t.Fatal(err)
			}
			w := watches{
				self: self, replicas: discoverylisters.NewEndpointSliceLister(index),
				synced: []cache.InformerSynced{func() bool { return true }, func() bool { return !tc.unread }},
			}
			if tc.acquired > 0 {
				w.leases = budget.NewControllerLeases(now, time.Minute, "lease")
				w.leases.Observe("lease", start, start.Add(-tc.acquired))
			}
			now.SetTime(start.Add(tc.after))
			if got := w.ready(); got != tc.want {
				t.Errorf("ready is %t, want %t", got, tc.want)
			}
		})
	}
}
