package lifecycle_test

import (
	"fmt"
	"testing"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
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
