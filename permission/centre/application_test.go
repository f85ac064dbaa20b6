package centre

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
	"github.com/breakwater-dev/breakwater/test/database"
	double "github.com/breakwater-dev/breakwater/test/provider"
)

func TestAnApplicationIsGrantedInOrderAndTakenBack(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		w := start(t, address)
		w.register(nil, "web", "db", "cache")
		a := w.ask(pod(1, "web"))
		if a.Attempt != 1 || len(a.Permissions) != 2 || a.Permissions[0].Owner != "team-a" {
			t.Errorf("what was asked for: %+v", a)
		}
		granted := w.until(a.ID, api.Granted)
		if !granted.Permissions[0].Since.Before(granted.Permissions[1].Since) {
			t.Errorf("db came at %s, after cache at %s", granted.Permissions[0].Since, granted.Permissions[1].Since)
		}
		if again := w.ask(pod(1, "web")); again.ID != a.ID || again.State != api.Granted || again.Attempt != 1 {
			t.Errorf("asked again: %+v", again)
		}
		want := []double.Entry{{IP: "10.0.0.2", Permission: "cache", Pod: "uid-00001"}, {IP: "10.0.0.2", Permission: "db", Pod: "uid-00001"}}
		if diff := cmp.Diff(want, w.double.Stats().Held); diff != "" {
			t.Error(diff)
		}

		if status, _ := w.do(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil); status != http.StatusAccepted {
			t.Errorf("revoke: %d", status)
		}
		w.until(a.ID, api.Revoked)
		if status, _ := w.do(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil); status != http.StatusOK {
			t.Errorf("revoke again: %d", status)
		}
		if status, problem := w.do(ownerToken, "POST", "/v1/applications/"+a.ID+"/reset", nil, nil); status != http.StatusConflict {
			t.Errorf("reset when it is gone: %d %+v", status, problem)
		}
		b := w.double.Stats()
		if len(b.Held) != 0 || b.Granted != 2 || b.Revoked != 2 || b.Duplicates != 0 {
			t.Errorf("books: %+v", b)
		}
		var h api.History
		w.must(serverToken, "GET", "/v1/applications/"+a.ID+"/history", nil, &h)
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
			t.Errorf("who asked: %q", h.Items[0].Who)
		}
	})
}

func TestAThousandPodsAtOnceAreAllGrantedAndNeverAboveTheLimit(t *testing.T) {
	const limit, burst, pods = 200, 5, 1000 / slower
	each(t, func(t *testing.T, address string) {
		w := start(t, address)
		w.double.SetFaults(double.Faults{Limit: limit + burst})
		w.register(func(p *api.Provider) { p.RateLimit = api.RateLimit{PerSecond: limit, Burst: burst} }, "web", "db")
		began := time.Now()
		ids := make([]string, pods)
		var asking sync.WaitGroup
		gate := make(chan struct{}, 50)
		for n := range pods {
			asking.Go(func() {
				gate <- struct{}{}
				defer func() { <-gate }()
				ids[n] = w.ask(pod(n, "web")).ID
			})
		}
		asking.Wait()
		asked := time.Since(began)
		eventually(t, 3*time.Minute, "all are granted", func() bool {
			states, err := w.centre.store.View(t.Context()).CountStates()
			return err == nil && states[api.Granted] == pods
		})
		took := time.Since(began)
		b := w.double.Stats()
		t.Logf("asked in %s, all granted in %s, busiest second %d of %d", asked, took, b.Peak, limit)
		if b.Peak > limit+burst || b.Rejected != 0 || b.Granted != pods || b.Duplicates != 0 || b.Calls != pods {
			t.Errorf("books: %d calls, %d granted, %d refused, %d doubles, %d in the busiest second", b.Calls, b.Granted, b.Rejected, b.Duplicates, b.Peak)
		}
		slices.Sort(ids)
		if n := len(slices.Compact(ids)); n != pods {
			t.Errorf("%d applications", n)
		}
		if least := time.Duration(pods-burst) * time.Second / limit; took < least {
			t.Errorf("took %s; the limit alone takes %s", took, least)
		}
		// Fifty ask and thirty-two are called at once: so many change places anyway.
		if late := w.displaced(); late > 150+pods/10 {
			t.Errorf("one in twenty was overtaken by %d others or more", late)
		}
	})
}

func TestWrongParametersAreDeniedAfterOneCallInEachAttempt(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		w := start(t, address)
		w.register(nil, "web", "db")
		w.must(ownerToken, "PUT", "/v1/permissions/db", api.Permission{Meta: api.Meta{Owner: "team-a"}, Provider: "double",
			Parameters: map[string]string{"name": "db", "wrong": "true"}}, nil, "If-Match", `"1"`)
		a := w.ask(pod(1, "web"))
		for attempt := 1; attempt <= 3; attempt++ {
			denied := w.until(a.ID, api.Denied)
			p := denied.Permissions[0]
			if denied.Attempt != attempt || p.Calls != 1 || p.NextTry != nil || w.double.Stats().Calls != attempt {
				t.Fatalf("attempt %d: %+v, %d calls in all", attempt, denied, w.double.Stats().Calls)
			}
			if want := "the provider denied the request (HTTP 422): there is no such module"; p.Message != want {
				t.Errorf("message %q, want %q", p.Message, want)
			}
			if status, _ := w.do(serverToken, "POST", "/v1/applications", pod(1, "web"), nil); status != http.StatusAccepted {
				t.Fatalf("another attempt: %d", status)
			}
		}
		w.until(a.ID, api.Denied)
		// The owner says what is right; an owner may have it tried again.
		w.must(ownerToken, "PUT", "/v1/permissions/db", api.Permission{Meta: api.Meta{Owner: "team-a"}, Provider: "double",
			Parameters: map[string]string{"name": "db"}}, nil, "If-Match", `"2"`)
		w.must(ownerToken, "POST", "/v1/applications/"+a.ID+"/reset", nil, nil)
		w.until(a.ID, api.Granted)
	})
}

func TestWhatAProviderDecidesLaterIsPolledFor(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		w := start(t, address)
		w.double.SetFaults(double.Faults{DecideAfter: 400})
		w.register(nil, "web", "db")
		a := w.ask(pod(1, "web"))
		granted := w.until(a.ID, api.Granted)
		if calls := granted.Permissions[0].Calls; calls < 2 || calls > 12 {
			t.Errorf("%d calls", calls)
		}
		w.must(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil)
		w.until(a.ID, api.Revoked)
		if b := w.double.Stats(); len(b.Held) != 0 || b.Duplicates != 0 {
			t.Errorf("books: %+v", b)
		}
	})
}

// It is long enough for the queue to put the job away and fetch it again.
func TestAProviderThatAsksToWaitIsCalledWhenItSaid(t *testing.T) {
	t.Run("on", func(t *testing.T) {
		for name, store := range map[string]func() string{
			"sqlite":   func() string { return "sqlite:" + filepath.Join(t.TempDir(), "centre.db") },
			"postgres": func() string { return database.Postgres(t) },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := start(t, store())
				w.double.SetFaults(double.Faults{Status: http.StatusTooManyRequests, RetryAfter: 8})
				w.register(nil, "web", "db", "cache")
				a := w.ask(pod(1, "web"))
				eventually(t, 10*time.Second, "it says when it is tried again", func() bool {
					w.must(serverToken, "GET", "/v1/applications/"+a.ID, nil, &a)
					return a.Permissions[0].NextTry != nil
				})
				p := a.Permissions[0]
				if wait := p.NextTry.Sub(p.Since); wait < 8*time.Second || wait > 9*time.Second || p.Reason != "ProviderThrottled" || a.State != api.Applying {
					t.Errorf("it waits for %s: %s %+v", wait, a.State, p)
				}
				if other := a.Permissions[1]; other.State != api.Requested {
					t.Errorf("the next permission is %s", other.State)
				}
				w.double.SetFaults(double.Faults{})
				granted := w.until(a.ID, api.Granted)
				if granted.Permissions[0].Since.Before(*p.NextTry) || granted.Permissions[0].Calls != 2 {
					t.Errorf("granted at %s, next try was at %s: %+v", granted.Permissions[0].Since, p.NextTry, granted.Permissions[0])
				}
			})
		}
	})
}

func TestARevocationWaitsForTheGrantThatIsUnderWay(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		w := start(t, address)
		w.double.SetFaults(double.Faults{Delay: 400})
		w.register(nil, "web", "db", "cache")
		a := w.ask(pod(1, "web"))
		w.until(a.ID, api.Applying)
		eventually(t, 5*time.Second, "the provider is called", func() bool { return w.double.Stats().Calls == 1 })
		var going api.Application
		w.must(serverToken, "POST", "/v1/applications/revoke", api.RevokeRequest{Cluster: "c1", PodUID: "uid-00001"}, nil)
		w.must(serverToken, "GET", "/v1/applications/"+a.ID, nil, &going)
		if going.State != api.Revoking {
			t.Errorf("state %s", going.State)
		}
		w.until(a.ID, api.Revoked)
		if b := w.double.Stats(); len(b.Held) != 0 || b.Granted != 1 || b.Revoked != 1 {
			t.Errorf("books: %+v", b)
		}
	})
}

func TestANewSandboxKeepsTheGrantsOfItsNewAddressesOnly(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		w := start(t, address)
		w.register(nil, "web", "db")
		before, after := pod(1, "web"), pod(1, "web")
		after.PodIPs = []string{"fd00::7", "10.9.9.9"}
		old := w.until(w.ask(before).ID, api.Granted)
		now := w.until(w.ask(after).ID, api.Granted)
		if old.ID == now.ID {
			t.Fatal("other addresses are the same application")
		}
		var revoked api.ApplicationList
		w.must(serverToken, "POST", "/v1/applications/revoke", api.RevokeRequest{Cluster: "c1", PodUID: "uid-00001", KeepIPs: []string{"10.9.9.9", "fd00::7"}}, &revoked)
		if len(revoked.Items) != 1 || revoked.Items[0].ID != old.ID {
			t.Errorf("revoked: %+v", revoked)
		}
		w.until(old.ID, api.Revoked)
		var kept api.Application
		w.must(serverToken, "GET", "/v1/applications/"+now.ID, nil, &kept)
		if kept.State != api.Granted || len(w.double.Stats().Held) != 1 {
			t.Errorf("kept: %s, books %+v", kept.State, w.double.Stats().Held)
		}
	})
}

func TestGrantsOfPodsThatAReportDoesNotNameAreRevoked(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		w := start(t, address)
		w.register(nil, "web", "db")
		var ids []string
		for n := range 6 {
			ids = append(ids, w.until(w.ask(pod(n, "web")).ID, api.Granted).ID)
		}
		live := func(n int, ips ...string) api.LivePod { return api.LivePod{UID: fmt.Sprintf("uid-%05d", n), IPs: ips} }
		report := func(r api.PodReport) (int, api.Error, api.PodReportResult) {
			var result api.PodReportResult
			status, problem := w.do(serverToken, "POST", "/v1/clusters/c1/pods/reconcile", r, &result)
			return status, problem, result
		}
		// Just made: they may not have been listed yet.
		if _, _, result := report(api.PodReport{Observed: time.Now(), Empty: true}); result.Checked != 6 || result.Revoked != 0 {
			t.Errorf("within the grace period: %+v", result)
		}
		if status, problem, _ := report(api.PodReport{Observed: time.Now()}); status != 400 || problem.Field != "pods" {
			t.Errorf("nothing said: %d %+v", status, problem)
		}
		if status, problem, _ := report(api.PodReport{Observed: time.Now().Add(-2 * time.Hour), Empty: true}); status != 400 || problem.Field != "observed" {
			t.Errorf("an old list: %d %+v", status, problem)
		}
		w.age(5 * time.Minute)
		// Pod 1 has another address now, pod 2 has none yet, 0 is gone; the page ends with 3.
		_, _, result := report(api.PodReport{Observed: time.Now(), Through: "uid-00003",
			Pods: []api.LivePod{live(1, "10.7.7.7"), live(2), live(3, "10.0.0.4")}})
		slices.Sort(result.Applications)
		want := []string{ids[0], ids[1]}
		slices.Sort(want)
		if diff := cmp.Diff(want, result.Applications); diff != "" || result.Checked != 4 || result.Revoked != 2 {
			t.Errorf("first page: %+v\n%s", result, diff)
		}
		_, _, result = report(api.PodReport{Observed: time.Now(), After: "uid-00003", Pods: []api.LivePod{live(5, "10.0.0.6")}})
		if diff := cmp.Diff([]string{ids[4]}, result.Applications); diff != "" {
			t.Errorf("second page: %s", diff)
		}
		for _, n := range []int{0, 1, 4} {
			w.until(ids[n], api.Revoked)
		}
		if held := len(w.double.Stats().Held); held != 3 {
			t.Errorf("%d are held", held)
		}
		if status, _ := w.do(otherToken, "POST", "/v1/clusters/c1/pods/reconcile", api.PodReport{Observed: time.Now(), Empty: true}, nil); status != 403 {
			t.Errorf("another cluster's report: %d", status)
		}
	})
}

// displaced says how many others overtook those that were overtaken, but for
// the twentieth that was most.
func (w *world) displaced() int {
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
	asked := map[string]int{}
	for i, a := range apps {
		asked[a.ID] = i
	}
	// Updated is when it was granted.
	slices.SortFunc(apps, func(a, b store.Application) int { return a.Updated.Compare(b.Updated) })
	var by []int
	for i, a := range apps {
		by = append(by, i-asked[a.ID])
	}
	slices.Sort(by)
	return by[len(by)*19/20]
}

// age makes all applications older.
func (w *world) age(by time.Duration) {
	w.t.Helper()
	if _, err := w.centre.store.Writer().ExecContext(w.t.Context(), fmt.Sprintf("UPDATE applications SET created = created - %[1]d, asked = asked - %[1]d", by.Microseconds())); err != nil {
		w.t.Fatal(err)
	}
}
