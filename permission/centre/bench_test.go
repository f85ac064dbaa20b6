package centre

import (
	"sync"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// BenchmarkApplications asks for pods from 32 clients, with a provider that
// answers at once and has no limit to speak of, until all are granted.
func BenchmarkApplications(b *testing.B) {
	each(b, func(b *testing.B, address string) {
		const pods = 2000
		w := start(b, address)
		w.register(func(p *api.Provider) { p.RateLimit = api.RateLimit{PerSecond: 10000, Burst: 100} }, "web", "db")
		w.unchecked = true
		began := time.Now()
		var clients sync.WaitGroup
		gate := make(chan struct{}, 32)
		for n := range pods {
			clients.Go(func() {
				gate <- struct{}{}
				defer func() { <-gate }()
				w.ask(pod(n, "web"))
			})
		}
		clients.Wait()
		eventually(b, 5*time.Minute, "all are granted", func() bool {
			states, err := w.centre.store.View(b.Context()).CountStates()
			return err == nil && states[api.Granted] == pods
		})
		b.ReportMetric(pods/time.Since(began).Seconds(), "applications/s")
	})
}
