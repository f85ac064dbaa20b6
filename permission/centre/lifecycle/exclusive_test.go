package lifecycle_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
)

// exclusiveLog records which calls are exclusive.
type exclusiveLog struct{ calls []bool }

func (l *exclusiveLog) Client(api.Provider) (provider.Client, error) { return l, nil }

func (l *exclusiveLog) Call(_ context.Context, c provider.Call) provider.Result {
	l.calls = append(l.calls, c.Exclusive)
	return provider.Result{Outcome: provider.Done, Sent: true}
}

// A provider such as MySQL removes what an exclusive grant does not name.
func TestOnlyTheFirstPermissionOfAUserIsExclusive(t *testing.T) {
	f, calls := newSetsFixture(t, provider.Done), &exclusiveLog{}
	f.Clients = calls
	web := f.request("web")
	f.request("jobs") // the same permission for the same pod
	if _, err := f.RevokePod(t.Context(), api.RevokeRequest{Cluster: "c1", PodUID: "uid"}, "controller"); err != nil {
		t.Fatal(err)
	}
	if err := f.RevokeAfterDeadline(t.Context(), web, "controller"); err != nil {
		t.Fatal(err)
	}
	// Another pod at the address of a grant that is Leaked.
	if _, _, _, err := f.Request(t.Context(), api.ApplicationRequest{Cluster: "c1", PodUID: "next", PodIPs: []string{"10.0.0.1"}, Set: "web"}, "server"); err != nil {
		t.Fatal(err)
	}
	f.run()
	if diff := cmp.Diff([]bool{true, false}, calls.calls[:2]); diff != "" {
		t.Error(diff)
	}
	if last := calls.calls[len(calls.calls)-1]; !last {
		t.Errorf("the grant beside a leak is not exclusive: %v", calls.calls)
	}
}
