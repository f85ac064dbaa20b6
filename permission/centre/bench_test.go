package centre

import (
	"sync"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// BenchmarkApplications requests permissions for 2000 pods from 32 clients until all
// are granted. The provider answers at once and has a high rate limit.
func BenchmarkApplications(b *testing.B) {
	eachStore(b, func(b *testing.B, address string) {
		const pods = 2000
		w := newFixture(b, address)
		w.register(func(p *api.Provider) { p.RateLimit = api.RateLimit{PerSecond: 10000, Burst: 100} }, "web", "db")
		w.skipValidation = true
		began := time.Now()
		var clients sync.WaitGroup
		semaphore := make(chan struct{}, 32)
		for n := range pods {
			clients.Go(func() {
				semaphore <- struct{}{}
				defer func() { <-semaphore }()
				w.request(podRequest(n, "web"))
			})
		}
		clients.Wait()
		eventually(b, 5*time.Minute, "all applications are granted", func() bool {
			states, err := w.centre.store.View(b.Context()).CountStates()
			return err == nil && states[api.Granted] == pods
		})
		b.ReportMetric(pods/time.Since(began).Seconds(), "applications/s")
	})
}
