package lifecycle_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// notifierFunc is a lifecycle.Notifier.
type notifierFunc func(application string)

func (n notifierFunc) Notify(application string) { n(application) }

// The client of a report gives up after a minute.
func TestAReportThatEndsEarlyUsesUpTheConfirmationOfItsRevocationsOnly(t *testing.T) {
	const pods = 100
	f := newSetsFixture(t, provider.Done)
	for n := range pods {
		uid := fmt.Sprintf("uid-%d", n)
		if _, _, _, err := f.Request(t.Context(), api.ApplicationRequest{Cluster: "c1", Namespace: "shop", Pod: uid, PodUID: uid, PodIPs: []string{fmt.Sprintf("10.0.0.%d", n)}, Set: "web"}, "server"); err != nil {
			t.Fatal(err)
		}
	}
	f.run()
	f.clock.Step(time.Hour)
	report := func(ctx context.Context) (api.PodReportResult, error) {
		return f.ApplyPodReport(ctx, "c1", api.PodReport{ClusterUID: "c1-uid", Observed: f.clock.Now(), Empty: true}, "controller")
	}
	if result, err := report(t.Context()); err != nil || result.Held != pods {
		t.Fatalf("%+v, %v, want %d held", result, err, pods)
	}
	if _, err := f.ConfirmReport(t.Context(), "c1", api.ReportConfirmation{Revoke: pods}, "admin"); err != nil {
		t.Fatal(err)
	}
	expect := func(when string) (revoked int) {
		t.Helper()
		apps, err := f.Store.View(t.Context()).Applications(store.Filter{}, store.Page{Limit: pods})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range apps {
			if a.RevokeRequested {
				revoked++
			}
		}
		if c, err := f.Store.View(t.Context()).Cluster("c1"); err != nil || c.Confirmed != pods-revoked {
			t.Errorf("%s, %d applications are revoked and %d are confirmed, want %d; %v", when, revoked, c.Confirmed, pods-revoked, err)
		}
		return revoked
	}

	ctx, giveUp := context.WithCancel(t.Context())
	none := f.Notifier
	f.Notifier = notifierFunc(func(string) { giveUp() }) // after the first transaction
	if _, err := report(ctx); err == nil {
		t.Error("the report has not ended early")
	}
	if revoked := expect("after the client gave up"); revoked == 0 || revoked == pods {
		t.Errorf("%d applications are revoked, want a part of %d", revoked, pods)
	}
	f.Notifier = none
	if _, err := report(t.Context()); err != nil {
		t.Error(err)
	}
	if revoked := expect("after the next report"); revoked != pods {
		t.Errorf("%d applications are revoked, want %d", revoked, pods)
	}
}
