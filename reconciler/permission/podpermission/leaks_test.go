package podpermission

import (
	"context"
	"net/url"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// slowLister takes time for each list.
type slowLister struct {
	clock *testingclock.FakePassiveClock
	takes time.Duration
	lists int
}

func (s *slowLister) Each(context.Context, url.Values, func(api.Application)) error {
	s.lists++
	s.clock.SetTime(s.clock.Now().Add(s.takes))
	return nil
}

func TestManyLeaksAreListedLessOften(t *testing.T) {
	for name, tc := range map[string]struct {
		takes time.Duration
		want  int
	}{
		"few leaks":     {100 * time.Millisecond, 60},
		"many leaks":    {30 * time.Second, 10},
		"a slow centre": {5 * time.Minute, 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, pod(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}})
			lister := &slowLister{clock: w.clock, takes: tc.takes}
			tasks := &periodicTasks{Reconciler: w.Reconciler, lister: lister, podReportReceiver: &reportSink{}}
			for end := zero.Add(time.Hour); w.clock.Now().Before(end); w.clock.SetTime(w.clock.Now().Add(dueCheckInterval)) {
				tasks.runDue(t.Context())
			}
			if lister.lists != tc.want {
				t.Errorf("listed %d times in an hour, want %d", lister.lists, tc.want)
			}
		})
	}
}
