package budget

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// start is when the process of the webhook starts.
var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestBudgetsAreStaleWhileALeaseOfTheControllerIsNotRenewed(t *testing.T) {
	const limit = time.Minute
	type renewal struct {
		// seen is when the webhook sees the renewal, written the time in the Lease;
		// both since start.
		seen, written time.Duration
		// age is how long before written the holder acquired the Lease.
		age time.Duration
	}
	for name, tc := range map[string]struct {
		renewals []renewal
		asked    time.Duration
		want     string
	}{
		"no Lease, at first":                   {nil, limit, ""},
		"no Lease":                             {nil, limit + time.Second, "was not renewed for 1m1s"},
		"renewed":                              {[]renewal{{0, 0, time.Hour}, {50 * time.Second, 50 * time.Second, time.Hour}}, 100 * time.Second, ""},
		"not renewed":                          {[]renewal{{0, 0, time.Hour}, {50 * time.Second, 50 * time.Second, time.Hour}}, 111 * time.Second, "was not renewed for 1m1s"},
		"the same renewal again":               {[]renewal{{0, 0, time.Hour}, {50 * time.Second, 0, time.Hour}}, 61 * time.Second, "was not renewed"},
		"old when the webhook starts":          {[]renewal{{0, -time.Hour, time.Hour}}, 0, "was not renewed for 1h0m0s"},
		"the clock of the controller is early": {[]renewal{{0, -time.Hour, time.Hour}, {2 * time.Second, 2*time.Second - time.Hour, time.Hour}, {12 * time.Second, 12*time.Second - time.Hour, time.Hour + 10*time.Second}}, 13 * time.Second, ""},
		"the clock of the controller is late":  {[]renewal{{0, time.Hour, time.Hour}}, 61 * time.Second, "was not renewed for 1m1s"},
		"ahead of the local clock when the webhook starts":      {[]renewal{{0, 5 * time.Minute, time.Hour}}, time.Second, "ahead of the local clock"},
		"ahead of the local clock, and renewed":                 {[]renewal{{0, time.Second, time.Hour}, {3 * time.Second, 4 * time.Second, time.Hour + 3*time.Second}}, 3 * time.Second, ""},
		"ahead of the local clock, and renewed by the next":     {[]renewal{{0, 5 * time.Minute, time.Hour}, {3 * time.Second, 3 * time.Second, 0}}, 4 * time.Second, "was acquired"},
		"renewed after an outage":                               {[]renewal{{0, 0, time.Hour}, {70 * time.Second, 70 * time.Second, time.Hour}}, 79 * time.Second, "was acquired"},
		"renewed twice after an outage":                         {[]renewal{{0, 0, time.Hour}, {70 * time.Second, 70 * time.Second, time.Hour}, {72 * time.Second, 72 * time.Second, time.Hour}}, 79 * time.Second, "was acquired"},
		"computed after an outage":                              {[]renewal{{0, 0, time.Hour}, {70 * time.Second, 70 * time.Second, time.Hour}, {80 * time.Second, 80 * time.Second, time.Hour + 10*time.Second}, {80 * time.Second, 80 * time.Second, time.Hour}}, 80 * time.Second, ""},
		"acquired before the webhook started":                   {[]renewal{{0, 0, 2 * time.Second}, {2 * time.Second, 2 * time.Second, 4 * time.Second}}, 3 * time.Second, "was acquired"},
		"computed after it was acquired":                        {[]renewal{{0, 0, 0}, {10 * time.Second, 10 * time.Second, 10 * time.Second}}, 10 * time.Second, ""},
		"acquired, and the holder crashed":                      {[]renewal{{0, 0, 0}}, 20 * time.Second, "was acquired"},
		"acquired by the next holder":                           {[]renewal{{0, 0, 0}, {17 * time.Second, 17 * time.Second, 0}}, 20 * time.Second, "was acquired"},
		"handed over while watched":                             {[]renewal{{0, 0, time.Hour}, {2 * time.Second, 2 * time.Second, 0}}, 3 * time.Second, ""},
		"the clock of the controller is early, and it acquired": {[]renewal{{0, -30 * time.Second, time.Second}}, 3 * time.Second, "was acquired"},
	} {
		t.Run(name, func(t *testing.T) {
			now := clocktesting.NewFakePassiveClock(start)
			c := NewControllerLeases(now, limit, "a", "b")
			at := func(d time.Duration) {
				now.SetTime(start.Add(d))
				c.Observe("b", start.Add(d), start.Add(-time.Hour)) // the other Lease is renewed
			}
			for d := time.Duration(0); d <= tc.asked; d += time.Second {
				at(d)
				for _, r := range tc.renewals {
					if r.seen == d {
						c.Observe("a", start.Add(r.written), start.Add(r.written-r.age))
					}
				}
			}
			got := c.StaleReason()
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAProcessWaitsAtItsStartUntilBudgetsAreComputed(t *testing.T) {
	const s = time.Second
	type renewal struct {
		// seen is when the webhook sees the renewal, since start.
		seen time.Duration
		// age is how long before the holder acquired the Lease.
		age time.Duration
	}
	for name, tc := range map[string]struct {
		renewals []renewal
		asked    time.Duration
		want     bool
	}{
		"no Lease":                              {nil, s, false},
		"acquired long ago":                     {[]renewal{{0, time.Hour}}, 0, false},
		"acquired a short time ago":             {[]renewal{{0, 3 * s}}, 9 * s, true},
		"computed":                              {[]renewal{{0, 3 * s}, {3 * s, 6 * s}, {12 * s, 15 * s}}, 12 * s, false},
		"the holder crashed":                    {[]renewal{{0, 3 * s}}, 19 * s, true},
		"the holder crashed, after the limit":   {[]renewal{{0, 3 * s}}, 20 * s, false},
		"acquired after the process started":    {[]renewal{{5 * s, 0}}, 6 * s, true},
		"an outage a long time after the start": {[]renewal{{0, time.Hour}, {80 * s, 0}}, 81 * s, false},
	} {
		t.Run(name, func(t *testing.T) {
			now := clocktesting.NewFakePassiveClock(start)
			c := NewControllerLeases(now, time.Minute, "lease")
			for _, r := range tc.renewals {
				at := start.Add(r.seen)
				now.SetTime(at)
				c.Observe("lease", at, at.Add(-r.age))
			}
			now.SetTime(start.Add(tc.asked))
			if got := c.OutageUnknown(); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
	c := NewControllerLeases(clocktesting.NewFakePassiveClock(start), time.Minute, "lease")
	if c.Observe("lease", start.Add(time.Hour), start); !c.OutageUnknown() {
		t.Error("a process that does not know how old the last renewal is does not wait")
	}
	if (*ControllerLeases)(nil).OutageUnknown() {
		t.Error("a process without a limit waits")
	}
}

// The numbers of a budget allow one more pod, but pods were lost since they were written.
func TestABudgetThatNobodyComputesDeniesWhatItAllowed(t *testing.T) {
	fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, nil)}, runtime.Object(newPod(nil)))
	now := clocktesting.NewFakePassiveClock(start)
	fx.guard.Controller = NewControllerLeases(now, time.Minute, "lease")
	now.SetTime(start.Add(2 * time.Minute))
	a := fx.ask(t, deletion(t, newPod(nil)))
	if a.Response.Allowed || a.Decision != DecisionStale || a.Response.Result.Code != 429 {
		t.Errorf("got %s: %+v, want %s with code 429", a.Decision, a.Response.Result, DecisionStale)
	}
	if a.Response.Result.Details.RetryAfterSeconds != 0 {
		t.Error("Retry-After blocks a worker of client-go")
	}
	if charged := fx.budget(t, "web").Status.DeletedPods; len(charged) > 0 {
		t.Errorf("charged %v", charged)
	}
	unready := newPod(nil)
	unready.Status.Conditions = nil
	if a := fx.ask(t, deletion(t, unready)); !a.Response.Allowed {
		t.Errorf("a deletion that costs nothing: %s", a.Response.Result.Message)
	}
}
