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

// The revocation was requested before the clock was ahead, and its first call failed meanwhile.
func TestARetryIsDueAfterTheClockWasSetBack(t *testing.T) {
	f := newSetsFixture(t, provider.Done)
	f.updateProvider(func(p *api.Provider) { p.Retry.MaxCalls = 2 })
	id := f.request("web")
	f.revokePod("uid")
	began := f.clock.Now()
	f.clock.Step(20 * time.Minute)
	f.provider.results = []provider.Result{{Outcome: provider.Failed, Sent: true}}
	if !runNext(t, f.Engine, f.clock.Now()) || f.state(id) != api.Revoking {
		t.Fatalf("the application is %s, want Revoking", f.state(id))
	}
	f.clock.SetTime(began.Add(time.Second))
	if _, err := f.ResumeAfterClockSetBack(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	grants, err := f.Store.View(t.Context()).Grants(id)
	if err != nil || !grants[0].Began.Equal(f.clock.Now()) || grants[0].Since.After(began) {
		t.Errorf("the grants are %+v, %v", grants, err)
	}
	if !runNext(t, f.Engine, f.clock.Now()) || f.state(id) != api.Revoked {
		t.Errorf("the application is %s, want Revoked", f.state(id))
	}
}

func TestAStepThatIsDueLaterIsNotDueWithoutAChangeOfTheClock(t *testing.T) {
	f := newSetsFixture(t, provider.Failed) // with one call, the revoked grant is Leaked
	id := f.request("web")
	if state := f.revoke(id); state != api.Leaked {
		t.Fatalf("the application is %s, want Leaked", state)
	}
	latest, err := f.ResumeAfterClockSetBack(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	// The clock of another replica is ahead.
	now := f.clock.Now()
	f.clock.Step(20 * time.Minute)
	f.requestFor(api.ApplicationRequest{Cluster: "c1", PodUID: "new", PodIPs: []string{"10.0.0.2"}, Set: "web"})
	f.clock.SetTime(now)
	for range 3 {
		f.clock.Step(time.Millisecond)
		if latest, err = f.ResumeAfterClockSetBack(t.Context(), latest); err != nil {
			t.Fatal(err)
		}
	}
	if ran, err := f.RunStep(t.Context(), "double"); err != nil || ran {
		t.Errorf("a step that is due later ran: %t, %v", ran, err)
	}
}
