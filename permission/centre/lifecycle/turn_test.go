package lifecycle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// openBreaker is a breaker that is open since down.
type openBreaker struct {
	noLimits
	down time.Time
}

func (openBreaker) OpenFor(string) time.Duration { return 15 * time.Second }

func (o openBreaker) DownSince(string) time.Time { return o.down }

// grant returns the only grant.
func (f *setsFixture) grant() store.Grant {
	f.t.Helper()
	apps, err := f.Store.View(f.t.Context()).Applications(store.Filter{}, store.Page{Limit: 2})
	if err != nil || len(apps) != 1 {
		f.t.Fatalf("%d applications, %v", len(apps), err)
	}
	grants, err := f.Store.View(f.t.Context()).Grants(apps[0].ID)
	if err != nil || len(grants) != 1 {
		f.t.Fatalf("%d grants, %v", len(grants), err)
	}
	return grants[0]
}

func (f *setsFixture) requestOnly(set string) {
	f.t.Helper()
	if _, _, _, err := f.Request(f.t.Context(), api.ApplicationRequest{Cluster: "c1", PodUID: "uid", PodIPs: []string{"10.0.0.1"}, Set: set}, "server"); err != nil {
		f.t.Fatal(err)
	}
}

// A wait for the rate limit, or for a provider that is down for a short time, is no
// failure of the pod.
func TestAGrantThatWaitsForTheProviderFailsOnlyWhenTheProviderIsDownTooLong(t *testing.T) {
	const timeout = 10 * time.Minute
	for name, tc := range map[string]struct {
		waited, down time.Duration
		want         api.State
	}{
		"a new request to a provider that is down":               {time.Minute, time.Hour, api.Requested},
		"a request that waited long before the provider is down": {time.Hour, time.Minute, api.Requested},
		"both last too long":                                     {11 * time.Minute, 11 * time.Minute, api.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			f := newSetsFixture(t, provider.Done)
			f.updateProvider(func(p *api.Provider) { p.Retry.PollTimeoutSeconds = timeout.Seconds() })
			f.requestOnly("web")
			requested := f.grant().Due
			f.clock.Step(tc.waited)
			f.Breaker = openBreaker{noLimits{f.clock}, f.clock.Now().Add(-tc.down)}
			if ran, err := f.RunStep(t.Context(), "double"); ran || err != nil {
				t.Errorf("ran %t, %v", ran, err)
			}
			g := f.grant()
			if g.State != tc.want || len(f.provider.calls) > 0 {
				t.Errorf("the grant is %s (%s) after calls %v, want %s", g.State, g.Reason, f.provider.calls, tc.want)
			}
			if tc.want == api.Requested && !g.Due.Equal(requested) {
				t.Errorf("the grant lost its turn: due at %s, was %s", g.Due, requested)
			}
		})
	}
}

// The breaker is that of one replica. Grants also wait for the rate limit of the others.
func TestAGrantThatWaitsFailsOnlyIfNoReplicaGotAnAnswer(t *testing.T) {
	const timeout, waited, down = 10 * time.Minute, 30 * time.Minute, 20 * time.Minute
	for name, tc := range map[string]struct {
		outcome  provider.Outcome
		answered time.Duration // before the check
		want     api.State
	}{
		"another replica was granted a permission":     {provider.Done, 9 * time.Minute, api.Requested},
		"another replica was denied one":               {provider.Denied, 9 * time.Minute, api.Requested},
		"the last answer is older than the timeout":    {provider.Done, 11 * time.Minute, api.Failed},
		"the call of the other replica failed as well": {provider.Failed, 9 * time.Minute, api.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			f := newSetsFixture(t, tc.outcome)
			f.updateProvider(func(p *api.Provider) { p.Retry.PollTimeoutSeconds = timeout.Seconds() })
			var waiting string
			for n := range 2 {
				a, _, _, err := f.Request(t.Context(), api.ApplicationRequest{Cluster: "c1", PodUID: fmt.Sprint(n), PodIPs: []string{fmt.Sprintf("10.0.0.%d", n)}, Set: "web"}, "server")
				if err != nil {
					t.Fatal(err)
				}
				waiting = a.ID
				f.clock.Step(time.Millisecond)
			}
			f.clock.Step(waited - tc.answered)
			if ran, err := f.RunStep(t.Context(), "double"); !ran || err != nil {
				t.Fatalf("ran %t, %v", ran, err)
			}
			f.clock.Step(tc.answered)
			f.Breaker = openBreaker{noLimits{f.clock}, f.clock.Now().Add(-down)}
			if ran, err := f.RunStep(t.Context(), "double"); ran || err != nil {
				t.Errorf("ran %t, %v", ran, err)
			}
			grants, err := f.Store.View(t.Context()).Grants(waiting)
			if err != nil || len(grants) != 1 || grants[0].State != tc.want {
				t.Errorf("the grants that wait are %+v, %v, want %s", grants, err, tc.want)
			}
		})
	}
}

// The provider decides in time, but the first call was late.
func TestTheTimeInTheQueueIsNotThatOfTheDecision(t *testing.T) {
	f := newSetsFixture(t, provider.Pending)
	f.updateProvider(func(p *api.Provider) { p.Retry.PollTimeoutSeconds, p.Retry.PollSeconds = 600, 5 })
	f.requestOnly("web")
	f.clock.Step(time.Hour)
	if !runNext(t, f.Engine, f.clock.Now()) {
		t.Fatal("no step is due")
	}
	if g := f.grant(); g.State != api.Applying || !g.Pending {
		t.Errorf("after the first call: %s (%s: %s)", g.State, g.Reason, g.Message)
	}
}

func TestATransactionStartsABoundedNumberOfSteps(t *testing.T) {
	const pods, bound = 100, 64
	f := newSetsFixture(t, provider.Done)
	for n := range pods {
		if _, _, _, err := f.Request(t.Context(), api.ApplicationRequest{Cluster: "c1", PodUID: fmt.Sprint(n), PodIPs: []string{fmt.Sprintf("10.0.0.%d", n)}, Set: "web"}, "server"); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int{bound, pods} {
		if _, err := f.RunSteps(t.Context(), "double", pods, func(int) {}); err != nil || len(f.provider.calls) != want {
			t.Errorf("%d calls, %v; want %d", len(f.provider.calls), err, want)
		}
	}
}
