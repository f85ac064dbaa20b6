package centre

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/lifecycle"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	double "github.com/breakwater-dev/breakwater/test/provider"
)

// The pods run the code of the init container against the init-action-server,
// which calls a centre with its store: all of them over HTTP, with a virtual
// clock. Nobody intervenes.
func TestAnOutageOfAnHourLosesNoGrantAndStartsNoAppWithoutItsPermissions(t *testing.T) {
	for name, tc := range map[string]struct {
		// fault is set before pod 1 requests, begin runs afterwards.
		fault      double.Faults
		begin, end func(w *outageFixture)
		// attempts is the maximum number of attempts of a pod: three at once, one
		// in each interval of 2 min doubled up to an hour, and the successful one.
		attempts int
	}{
		"the provider answers 503": {
			fault:    double.Faults{Status: http.StatusServiceUnavailable},
			begin:    func(*outageFixture) {},
			end:      func(*outageFixture) {},
			attempts: 8,
		},
		"the centre is stopped, and the last response is lost": {
			fault:    double.Faults{Lose: 1},
			begin:    (*outageFixture).stopCentre,
			end:      (*outageFixture).startCentre,
			attempts: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			stub, endpoint := startDouble(t)
			config := testConfig(t, "sqlite:"+t.TempDir()+"/centre.db")
			synctest.Test(t, func(t *testing.T) {
				w := newOutageFixture(t, config, stub, nil)
				defer w.stop()
				w.register(endpoint)
				granted := w.startPod(0)
				time.Sleep(time.Minute)
				if n := granted.starts(); n != 1 {
					t.Fatalf("before the outage: %d starts", n)
				}

				// Pod 1 is requested when the outage begins, the others during the
				// outage. The init container of pod 0 runs again.
				stub.SetFaults(tc.fault)
				pods := []*outagePod{w.startPod(1)}
				time.Sleep(100 * time.Millisecond)
				tc.begin(w)
				time.Sleep(time.Second)
				pods = append(pods, w.startPod(2))
				time.Sleep(20 * time.Minute)
				pods = append(pods, w.startPod(3))
				granted.restart()
				time.Sleep(39 * time.Minute)
				pods = append(pods, w.startPod(4))
				time.Sleep(59 * time.Second)
				for _, p := range pods {
					if c := p.condition(); p.starts() > 0 || c.Status != corev1.ConditionFalse || c.Reason == podmeta.ReasonPermissionDenied {
						t.Errorf("pod %d during the outage: %d starts, condition %+v", p.n, p.starts(), c)
					}
				}
				stub.SetFaults(double.Faults{})
				tc.end(w)

				// Before the end of the outage seven attempts fail at most: the last interval
				// is 64 min at most. The backoff of the kubelet is 5 min at most.
				time.Sleep(time.Hour + 10*time.Minute)
				for _, p := range pods {
					if p.starts() != 1 {
						t.Errorf("pod %d: %d starts", p.n, p.starts())
					}
					a, err := w.centre.store.View(t.Context()).Application(lifecycle.ID(p.request()))
					if err != nil || a.State != api.Granted || a.Attempt > tc.attempts {
						t.Errorf("pod %d: %s after %d attempts, want Granted after at most %d (%v)", p.n, a.State, a.Attempt, tc.attempts, err)
					}
				}
				if n := granted.starts(); n != 2 {
					t.Errorf("the pod that was granted before the outage: %d starts", n)
				}
				b := stub.Stats()
				if all := len(pods) + 1; len(b.Current) != all || b.Granted != all || b.Revoked != 0 || b.Duplicates != 0 {
					t.Errorf("stats of the provider: %+v", b)
				}
				before, err := w.centre.store.View(t.Context()).Grants(lifecycle.ID(granted.request()))
				if err != nil || len(before) != 1 || stub.CallsOf(before[0].CallKey) != 1 {
					t.Errorf("the grant from before the outage was requested again: %+v (%v)", before, err)
				}
				if most := tc.attempts*maxCalls*len(pods) + 1; b.Calls > most {
					t.Errorf("%d calls, want at most %d", b.Calls, most)
				}
			})
		})
	}
}
