package lifecycle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// The step has read the provider before it changed.
func TestALeakThatIsWrittenAfterItsProviderCanRevokeIsRevoked(t *testing.T) {
	f := newSetsFixture(t, provider.Done)
	id := f.request("web")
	if _, _, _, err := f.Revoke(t.Context(), id, "owner"); err != nil {
		t.Fatal(err)
	}
	canRevoke := func(can bool) { f.updateProvider(func(p *api.Provider) { p.CanRevoke = can }) }
	canRevoke(false)
	f.provider.before = func() {
		f.provider.before = nil
		canRevoke(true)
		if err := f.ScheduleLeaks(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	f.run()
	if state := f.state(id); state != api.Leaked {
		t.Fatalf("the application is %s, want Leaked", state)
	}
	if err := f.ScheduleLeaks(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.run()
	if state := f.state(id); state != api.Revoked {
		t.Errorf("the application is %s, want Revoked", state)
	}
}

// New grants wait for the steps that are due.
func TestLeaksBecomeDueInParts(t *testing.T) {
	const pods = 150
	f := newSetsFixture(t, provider.Done)
	f.updateProvider(func(p *api.Provider) { p.CanRevoke = false })
	schedule := func() (due int) {
		if err := f.ScheduleLeaks(t.Context()); err != nil {
			t.Fatal(err)
		}
		due, err := f.Store.View(t.Context()).CountDue("double", f.clock.Now(), pods)
		if err != nil {
			t.Fatal(err)
		}
		return due
	}
	for n := range pods {
		uid := fmt.Sprintf("uid-%d", n)
		if _, _, _, err := f.Request(t.Context(), api.ApplicationRequest{Cluster: "c1", Namespace: "shop", Pod: uid, PodUID: uid, PodIPs: []string{fmt.Sprintf("10.0.0.%d", n)}, Set: "web"}, "server"); err != nil {
			t.Fatal(err)
		}
	}
	f.run()
	for n := range pods {
		f.revokePod(fmt.Sprintf("uid-%d", n))
	}
	f.run()
	if due := schedule(); due != 0 {
		t.Errorf("%d leaks of a provider that cannot revoke are due", due)
	}
	f.updateProvider(func(p *api.Provider) { p.CanRevoke = true })
	for range 2 {
		if due := schedule(); due != 100 {
			t.Errorf("%d leaks are due, want 100", due)
		}
	}
	f.run()
	if due := schedule(); due != 50 {
		t.Errorf("%d leaks are due after the first 100, want 50", due)
	}
}

// Otherwise the leak is reported for up to an hour, also at the next pod with the address.
func TestALeakIsRevokedWithTheGrantOfTheOtherPod(t *testing.T) {
	f := newSetsFixture(t, provider.Done)
	request := func(uid string) string {
		return f.requestFor(api.ApplicationRequest{Cluster: "c1", Namespace: "shop", Pod: uid, PodUID: uid, PodIPs: []string{"10.0.0.1"}, Set: "web"})
	}
	first := request("first")
	f.run()
	f.provider.outcome = provider.Failed // with one call, the grant is Leaked
	f.revokePod("first")
	if !runNext(t, f.Engine, f.clock.Now()) || f.state(first) != api.Leaked {
		t.Fatalf("the application is %s, want Leaked", f.state(first))
	}
	f.provider.outcome = provider.Done
	second := request("second")
	for range 9 { // the grant of the second pod, and retries of the leak
		if !runNext(t, f.Engine, f.clock.Now().Add(2*time.Hour)) {
			t.Fatal("no step is due")
		}
	}
	if f.state(first) != api.Leaked || f.state(second) != api.Granted {
		t.Fatalf("the first application is %s, the second %s", f.state(first), f.state(second))
	}
	f.revokePod("second")
	for until := f.clock.Now().Add(5 * time.Second); runNext(t, f.Engine, until); {
		continue
	}
	if f.state(first) != api.Revoked || f.state(second) != api.Revoked {
		t.Errorf("the first application is %s, the second %s, want Revoked", f.state(first), f.state(second))
	}
}

// Many leaks may wait for one grant, and new grants wait for the steps that are due.
func TestARevocationMakesABoundedNumberOfLeaksDue(t *testing.T) {
	const leaks = 150
	f := newSetsFixture(t, provider.Done)
	f.updateProvider(func(p *api.Provider) { p.Type, p.NodeScoped = api.ProviderMySQL, true })
	runDue := func() {
		for runNext(t, f.Engine, f.clock.Now()) {
			continue
		}
	}
	f.requestOnNode("last")
	updateObject(t, f.Store, store.KindPermission, "db", func(p *api.Permission) { p.Parameters = map[string]string{"database": "stock"} })
	for n := range leaks {
		f.requestOnNode(fmt.Sprintf("uid-%d", n))
	}
	runDue()
	for n := range leaks {
		f.revokePod(fmt.Sprintf("uid-%d", n))
	}
	runDue()
	leaked := func() int {
		n, err := f.Store.View(t.Context()).LeakedByProvider()
		if err != nil {
			t.Fatal(err)
		}
		return n["double"]
	}
	if n := leaked(); n != leaks {
		t.Fatalf("%d grants are Leaked, want %d", n, leaks)
	}
	f.revokePod("last")
	for _, want := range []int{100, 99} { // after the revocation of the last pod, and of a leak
		if !runNext(t, f.Engine, f.clock.Now()) {
			t.Fatal("no step is due")
		}
		if due, err := f.Store.View(t.Context()).CountDue("double", f.clock.Now(), leaks); err != nil || due != want {
			t.Errorf("%d leaks are due, %v, want %d", due, err, want)
		}
	}
	f.run()
	if n := leaked(); n != 0 {
		t.Errorf("%d grants are Leaked after all retries", n)
	}
}
