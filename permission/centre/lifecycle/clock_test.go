package lifecycle_test

import (
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
)

// Otherwise no pod would get or lose a permission for as long as the clock was ahead.
func TestStepsAreDueAfterTheClockWasSetBack(t *testing.T) {
	for name, restart := range map[string]bool{"the process goes on": false, "the process starts again": true} {
		t.Run(name, func(t *testing.T) {
			f := newSetsFixture(t, provider.Done)
			var latest time.Time
			resume := func() {
				t.Helper()
				var err error
				if latest, err = f.ResumeAfterClockSetBack(t.Context(), latest); err != nil {
					t.Fatal(err)
				}
			}
			step := func(want bool) {
				t.Helper()
				if ran, err := f.RunStep(t.Context(), "double"); err != nil || ran != want {
					t.Fatalf("a step ran: %t, %v, want %t", ran, err, want)
				}
			}
			resume()
			request := func(uid, ip string) string {
				return f.requestFor(api.ApplicationRequest{Cluster: "c1", PodUID: uid, PodIPs: []string{ip}, Set: "web"})
			}
			old := request("old", "10.0.0.1")
			step(true)
			began := f.clock.Now()
			f.clock.Step(20 * time.Minute)
			resume()
			f.revokePod("old")
			id := request("new", "10.0.0.2")
			f.clock.SetTime(began.Add(time.Second))
			step(false)
			if restart {
				latest = time.Time{}
			}
			resume()
			step(true)
			step(true)
			if f.state(id) != api.Granted || f.state(old) != api.Revoked {
				t.Errorf("the application that was requested is %s, the one that was revoked %s", f.state(id), f.state(old))
			}
		})
	}
}

func TestAStepThatIsDueLaterIsNotDueWithoutAChangeOfTheClock(t *testing.T) {
	f := newSetsFixture(t, provider.Failed) // with one call, the revoked grant is Leaked
	id := f.request("web")
	if state := f.revoke(id); state != api.Leaked {
		t.Fatalf("the application is %s, want Leaked", state)
	}
	var latest time.Time
	for range 3 {
		f.clock.Step(time.Millisecond)
		var err error
		if latest, err = f.ResumeAfterClockSetBack(t.Context(), latest); err != nil {
			t.Fatal(err)
		}
	}
	if ran, err := f.RunStep(t.Context(), "double"); err != nil || ran {
		t.Errorf("a step that is due later ran: %t, %v", ran, err)
	}
}
