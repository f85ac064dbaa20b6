package centre

import (
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/lifecycle"
)

// The pods start at once, and the init-action-server may call the centre twice a second.
// Each pod needs a list, a request and at most some polls. Run with virtual time.
func TestPodsThatWaitForTheLimitOfTheirServerDoNotFail(t *testing.T) {
	const pods = 100
	stub, endpoint := startDouble(t)
	config := testConfig(t, "sqlite:"+t.TempDir()+"/centre.db")
	synctest.Test(t, func(t *testing.T) {
		w := newOutageFixture(t, config, stub, rate.NewLimiter(2, 1))
		defer w.stop()
		w.register(endpoint)
		var all []*outagePod
		for n := range pods {
			all = append(all, w.startPod(n))
		}
		time.Sleep(pods * 4 / 2 * time.Second)
		for _, p := range all {
			a, err := w.centre.store.View(t.Context()).Application(lifecycle.ID(p.request()))
			if err != nil || a.State != api.Granted || a.Attempt != 1 || p.starts() != 1 {
				t.Errorf("pod %d: %s after %d attempts, %d starts, %s (%v)", p.n, a.State, a.Attempt, p.starts(), p.condition().Message, err)
			}
		}
	})
}
