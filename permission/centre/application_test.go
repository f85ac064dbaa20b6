package centre

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
	"github.com/breakwater-dev/breakwater/test/database"
	double "github.com/breakwater-dev/breakwater/test/provider"
	"github.com/breakwater-dev/breakwater/test/race"
)

func TestAnApplicationIsGrantedInOrderAndRevoked(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.register(nil, "web", "db", "cache")
		a := w.request(podRequest(1, "web"))
		if a.Attempt != 1 || len(a.Permissions) != 2 || a.Permissions[0].Owner != "team-a" {
			t.Errorf("new application: %+v", a)
		}
		granted := w.waitForState(a.ID, api.Granted)
		if !granted.Permissions[0].Since.Before(granted.Permissions[1].Since) {
			t.Errorf("db was granted at %s, not before cache at %s", granted.Permissions[0].Since, granted.Permissions[1].Since)
		}
		if again := w.request(podRequest(1, "web")); again.ID != a.ID || again.State != api.Granted || again.Attempt != 1 {
			t.Errorf("repeated request: %+v", again)
		}
		want := []double.Entry{{IP: "10.0.0.2", Permission: "cache", Pod: "uid-00001"}, {IP: "10.0.0.2", Permission: "db", Pod: "uid-00001"}}
		if diff := cmp.Diff(want, w.double.Stats().Current); diff != "" {
			t.Error(diff)
		}

		if status, _ := w.do(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil); status != http.StatusAccepted {
			t.Errorf("revoke: status %d", status)
		}
		w.waitForState(a.ID, api.Revoked)
		if status, _ := w.do(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil); status != http.StatusOK {
			t.Errorf("repeated revoke: status %d", status)
		}
		if status, problem := w.do(ownerToken, "POST", "/v1/applications/"+a.ID+"/reset", nil, nil); status != http.StatusConflict ||
			problem.Message != "the application is Revoked or Leaked, so a reset begins no attempt; a request of its pod does, if the pod still exists" {
			t.Errorf("reset of a revoked application: %d %+v", status, problem)
		}
		b := w.double.Stats()
		if len(b.Current) != 0 || b.Granted != 2 || b.Revoked != 2 || b.Duplicates != 0 {
			t.Errorf("stats of the provider: %+v", b)
		}
		var h api.History
		w.mustDo(serverToken, "GET", "/v1/applications/"+a.ID+"/history", nil, &h)
		var states []api.State
		for _, e := range h.Items {
			if e.Permission == "" {
				states = append(states, e.To)
			}
		}
		if diff := cmp.Diff([]api.State{api.Requested, api.Applying, api.Granted, api.Revoking, api.Revoked}, states); diff != "" {
			t.Error(diff)
		}
		if h.Items[0].Who != "server" {
			t.Errorf("requesting user: %q", h.Items[0].Who)
		}
	})
}

// The provider allows 50 calls per second, so the pods wait for it: in the order of
// their requests, except for those that are requested or called at the same time.
func TestAThousandConcurrentPodsAreGrantedInOrderWithinTheRateLimit(t *testing.T) {
	const limit, burst, pods = 50, 5, 1000 / race.Slowdown
	const clients, concurrentCalls = 50, 32
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.register(func(p *api.Provider) { p.RateLimit = api.RateLimit{PerSecond: limit, Burst: burst} }, "web", "db")
		began := time.Now()
		ids := make([]string, pods)
		var asking sync.WaitGroup
		semaphore := make(chan struct{}, clients)
		for n := range pods {
			asking.Go(func() {
				semaphore <- struct{}{}
				defer func() { <-semaphore }()
				ids[n] = w.request(podRequest(n, "web")).ID
			})
		}
		asking.Wait()
		requested := time.Since(began)
		eventually(t, 3*time.Minute, "all applications are granted", func() bool {
			states, err := w.centre.store.View(t.Context()).CountStates()
			return err == nil && states[api.Granted] == pods
		})
		took := time.Since(began)
		b := w.double.Stats()
		peak := w.calls.peak()
		t.Logf("requested in %s, all granted in %s, peak second %d of %d", requested, took, peak, limit)
		if peak > limit+burst || b.Granted != pods || b.Duplicates != 0 || b.Calls != pods {
			t.Errorf("stats: %d calls, %d granted, %d duplicates, %d in the peak second", b.Calls, b.Granted, b.Duplicates, peak)
		}
		slices.Sort(ids)
		if n := len(slices.Compact(ids)); n != pods {
			t.Errorf("%d applications, want %d", n, pods)
		}
		if least := time.Duration(pods-burst) * time.Second / limit; took < least {
			t.Errorf("took %s; the rate limit needs at least %s", took, least)
		}
		// A request may be overtaken by those of the other clients, a step by those that
		// are in progress with it. A pod that loses its turn is overtaken by hundreds.
		if late := w.mostOvertaken(); late > clients+2*concurrentCalls {
			t.Errorf("an application was overtaken by %d newer ones, want at most %d", late, clients+2*concurrentCalls)
		}
	})
}

func TestInvalidParametersAreDeniedAfterOneCallInEachAttempt(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.register(nil, "web", "db")
		w.mustDo(ownerToken, "PUT", "/v1/permissions/db", api.Permission{Meta: api.Meta{Owner: "team-a"}, Provider: "double",
			Parameters: map[string]string{"name": "db", "wrong": "true"}}, nil, "If-Match", `"1"`)
		a := w.request(podRequest(1, "web"))
		for attempt := 1; attempt <= 3; attempt++ {
			denied := w.waitForState(a.ID, api.Denied)
			p := denied.Permissions[0]
			if denied.Attempt != attempt || p.Calls != 1 || p.NextTry != nil || w.double.Stats().Calls != attempt {
				t.Fatalf("attempt %d: %+v, %d calls in total", attempt, denied, w.double.Stats().Calls)
			}
			if want := "the provider denied the request (HTTP 422): there is no such module"; p.Message != want {
				t.Errorf("message %q, want %q", p.Message, want)
			}
			if status, _ := w.do(serverToken, "POST", "/v1/applications", podRequest(1, "web"), nil); status != http.StatusAccepted {
				t.Fatalf("next attempt: status %d", status)
			}
		}
		w.waitForState(a.ID, api.Denied)
		// The owner corrects the permission and resets the application.
		w.mustDo(ownerToken, "PUT", "/v1/permissions/db", api.Permission{Meta: api.Meta{Owner: "team-a"}, Provider: "double",
			Parameters: map[string]string{"name": "db"}}, nil, "If-Match", `"2"`)
		w.mustDo(ownerToken, "POST", "/v1/applications/"+a.ID+"/reset", nil, nil)
		w.waitForState(a.ID, api.Granted)
	})
}

func TestAPendingGrantIsPolled(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.double.SetFaults(double.Faults{DecideAfter: 400})
		w.register(nil, "web", "db")
		a := w.request(podRequest(1, "web"))
		granted := w.waitForState(a.ID, api.Granted)
		if calls := granted.Permissions[0].Calls; calls < 2 || calls > 12 {
			t.Errorf("%d calls", calls)
		}
		w.mustDo(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil)
		w.waitForState(a.ID, api.Revoked)
		if b := w.double.Stats(); len(b.Current) != 0 || b.Duplicates != 0 {
			t.Errorf("stats of the provider: %+v", b)
		}
	})
}

// The provider accepts a grant without the value that its poll needs.
func TestAnAcceptedGrantThatCannotBePolledIsRevokedByACall(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		var revocations atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodDelete {
				revocations.Add(1)
				return
			}
			rw.WriteHeader(http.StatusAccepted)
		}))
		t.Cleanup(server.Close)
		w.register(func(p *api.Provider) {
			p.Endpoint, p.HTTP.Grant.Keep = server.URL, map[string]string{"ticket": "body.ticket"}
		}, "web", "db")
		a := w.waitForState(w.request(podRequest(1, "web")).ID, api.Denied)
		if p := a.Permissions[0]; p.Reason != "InvalidParameters" || p.Calls != 2 {
			t.Errorf("%+v", p)
		}
		w.mustDo(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil)
		w.waitForState(a.ID, api.Revoked)
		if n := revocations.Load(); n != 1 {
			t.Errorf("%d calls to revoke what the provider accepted, want 1", n)
		}
	})
}

func TestATicketIsPolledByTheNumberThatTheProviderReturned(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		const ticket = "1234567890123456789"
		polls := make(chan string, 1)
		server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/grants" {
				rw.WriteHeader(http.StatusAccepted)
				_, _ = io.WriteString(rw, `{"ticket": `+ticket+`}`)
				return
			}
			body, _ := io.ReadAll(r.Body)
			polls <- r.URL.Path + " " + string(body)
			_, _ = io.WriteString(rw, `{"state": "granted"}`)
		}))
		t.Cleanup(server.Close)
		w.register(func(p *api.Provider) {
			p.Endpoint = server.URL
			p.HTTP.Poll.Method, p.HTTP.Poll.Path, p.HTTP.Poll.Body = http.MethodPost, "/tickets/${int(kept.ticket)}", map[string]any{"ticket": "${kept.ticket}"}
		}, "web", "db")
		w.waitForState(w.request(podRequest(1, "web")).ID, api.Granted)
		if got, want := <-polls, "/tickets/"+ticket+` {"ticket":`+ticket+"}"; got != want {
			t.Errorf("polled %s, want %s", got, want)
		}
	})
}

func TestRetryAfterOfAProviderIsRespected(t *testing.T) {
	t.Run("store", func(t *testing.T) {
		for name, store := range map[string]func() string{
			"sqlite":   func() string { return "sqlite:" + filepath.Join(t.TempDir(), "centre.db") },
			"postgres": func() string { return database.Postgres(t) },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newFixture(t, store())
				// Only the first call is throttled.
				w.double.SetFaults(double.Faults{Status: http.StatusTooManyRequests, RetryAfter: 3})
				release := w.double.Hold()
				defer release()
				w.register(nil, "web", "db", "cache")
				a := w.request(podRequest(1, "web"))
				eventually(t, 10*time.Second, "the provider is called", func() bool { return w.double.Stats().Calls == 1 })
				w.double.SetFaults(double.Faults{})
				release()
				eventually(t, 10*time.Second, "nextTry is set", func() bool {
					w.mustDo(serverToken, "GET", "/v1/applications/"+a.ID, nil, &a)
					return a.Permissions[0].NextTry != nil
				})
				p := a.Permissions[0]
				if wait := p.NextTry.Sub(p.Since); wait < 3*time.Second || time.Until(*p.NextTry) > 3*time.Second || p.Reason != "ProviderThrottled" || a.State != api.Applying {
					t.Errorf("delay %s, state %s: %+v", wait, a.State, p)
				}
				if other := a.Permissions[1]; other.State != api.Requested {
					t.Errorf("the next permission is %s, want Requested", other.State)
				}
				granted := w.waitForState(a.ID, api.Granted)
				if granted.Permissions[0].Since.Before(*p.NextTry) || granted.Permissions[0].Calls != 2 {
					t.Errorf("granted at %s, nextTry was %s: %+v", granted.Permissions[0].Since, p.NextTry, granted.Permissions[0])
				}
			})
		}
	})
}

func TestARevocationWaitsForAGrantInProgress(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		release := w.double.Hold()
		defer release()
		w.register(nil, "web", "db", "cache")
		a := w.request(podRequest(1, "web"))
		w.waitForState(a.ID, api.Applying)
		eventually(t, 5*time.Second, "the provider is called", func() bool { return w.double.Stats().Calls == 1 })
		var revoking api.Application
		w.mustDo(serverToken, "POST", "/v1/applications/revoke", api.RevokeRequest{Cluster: "c1", PodUID: "uid-00001"}, nil)
		w.mustDo(serverToken, "GET", "/v1/applications/"+a.ID, nil, &revoking)
		if revoking.State != api.Revoking {
			t.Errorf("state %s, want Revoking", revoking.State)
		}
		release()
		w.waitForState(a.ID, api.Revoked)
		if b := w.double.Stats(); len(b.Current) != 0 || b.Granted != 1 || b.Revoked != 1 {
			t.Errorf("stats of the provider: %+v", b)
		}
	})
}

func TestANewSandboxKeepsTheGrantsOfItsNewAddressesOnly(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.register(nil, "web", "db")
		before, after := podRequest(1, "web"), podRequest(1, "web")
		after.PodIPs = []string{"fd00::7", "10.9.9.9"}
		old := w.waitForState(w.request(before).ID, api.Granted)
		now := w.waitForState(w.request(after).ID, api.Granted)
		if old.ID == now.ID {
			t.Fatal("another address has the same application")
		}
		var revoked api.ApplicationList
		w.mustDo(serverToken, "POST", "/v1/applications/revoke", api.RevokeRequest{Cluster: "c1", PodUID: "uid-00001", KeepIPs: []string{"10.9.9.9", "fd00::7"}}, &revoked)
		if len(revoked.Items) != 1 || revoked.Items[0].ID != old.ID {
			t.Errorf("revoked: %+v", revoked)
		}
		w.waitForState(old.ID, api.Revoked)
		var kept api.Application
		w.mustDo(serverToken, "GET", "/v1/applications/"+now.ID, nil, &kept)
		if kept.State != api.Granted || len(w.double.Stats().Current) != 1 {
			t.Errorf("kept application: %s, grants of the provider: %+v", kept.State, w.double.Stats().Current)
		}
	})
}

func TestApplicationsOfPodsMissingInAReportAreRevoked(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.register(nil, "web", "db")
		var ids []string
		for n := range 6 {
			ids = append(ids, w.waitForState(w.request(podRequest(n, "web")).ID, api.Granted).ID)
		}
		live := func(n int, ips ...string) api.LivePod { return api.LivePod{UID: fmt.Sprintf("uid-%05d", n), IPs: ips} }
		report := func(r api.PodReport) (int, api.Error, api.PodReportResult) {
			var result api.PodReportResult
			status, problem := w.do(serverToken, "POST", "/v1/clusters/c1/pods/reconcile", r, &result)
			return status, problem, result
		}
		// New applications may be newer than the list of pods.
		if _, _, result := report(api.PodReport{ClusterUID: "c1-uid", Observed: time.Now(), Empty: true}); result.Checked != 6 || result.Revoked != 0 {
			t.Errorf("within the grace period: %+v", result)
		}
		if status, problem, _ := report(api.PodReport{ClusterUID: "c1-uid", Observed: time.Now()}); status != 400 || problem.Field != "pods" {
			t.Errorf("no pods and not empty: %d %+v", status, problem)
		}
		if status, problem, _ := report(api.PodReport{ClusterUID: "c1-uid", Observed: time.Now().Add(-2 * time.Hour), Empty: true}); status != 400 || problem.Field != "observed" {
			t.Errorf("list older than 1 h: %d %+v", status, problem)
		}
		w.ageApplications(5 * time.Minute)
		// Pod 0 does not exist, 1 has another address, 2 has none yet; the page ends with 3.
		_, _, result := report(api.PodReport{ClusterUID: "c1-uid", Observed: time.Now(), Through: "uid-00003",
			Pods: []api.LivePod{live(1, "10.7.7.7"), live(2), live(3, "10.0.0.4")}})
		slices.Sort(result.Applications)
		want := []string{ids[0], ids[1]}
		slices.Sort(want)
		if diff := cmp.Diff(want, result.Applications); diff != "" || result.Checked != 4 || result.Revoked != 2 {
			t.Errorf("first page: %+v\n%s", result, diff)
		}
		_, _, result = report(api.PodReport{ClusterUID: "c1-uid", Observed: time.Now(), After: "uid-00003", Pods: []api.LivePod{live(5, "10.0.0.6")}})
		if diff := cmp.Diff([]string{ids[4]}, result.Applications); diff != "" {
			t.Errorf("second page: %s", diff)
		}
		for _, n := range []int{0, 1, 4} {
			w.waitForState(ids[n], api.Revoked)
		}
		if grants := len(w.double.Stats().Current); grants != 3 {
			t.Errorf("the provider has %d grants, want 3", grants)
		}
		if status, _ := w.do(otherToken, "POST", "/v1/clusters/c1/pods/reconcile", api.PodReport{ClusterUID: "c1-uid", Observed: time.Now(), Empty: true}, nil); status != 403 {
			t.Errorf("report of another cluster: status %d", status)
		}
	})
}

// mostOvertaken returns the maximum number of newer applications that were
// granted before an application.
func (w *fixture) mostOvertaken() int {
	w.t.Helper()
	var apps []store.Application
	for page := (store.Page{Limit: 500}); ; page.After = apps[len(apps)-1].ID {
		list, err := w.centre.store.View(w.t.Context()).Applications(store.Filter{}, page)
		if err != nil {
			w.t.Fatal(err)
		}
		apps = append(apps, list...)
		if len(list) < page.Limit {
			break
		}
	}
	slices.SortFunc(apps, func(a, b store.Application) int { return a.Created.Compare(b.Created) })
	most := 0
	for i, a := range apps {
		overtaken := 0
		for _, newer := range apps[i+1:] {
			// Updated is the time of the grant.
			if newer.Updated.Before(a.Updated) {
				overtaken++
			}
		}
		most = max(most, overtaken)
	}
	return most
}

// ageApplications sets back the begin of all attempts.
func (w *fixture) ageApplications(by time.Duration) {
	w.t.Helper()
	if _, err := w.centre.store.Writer().ExecContext(w.t.Context(), fmt.Sprintf("UPDATE applications SET created = created - %[1]d, asked = asked - %[1]d", by.Microseconds())); err != nil {
		w.t.Fatal(err)
	}
}
