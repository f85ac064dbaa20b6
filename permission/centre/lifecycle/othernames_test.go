package lifecycle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
)

// A renamed cluster keeps the UID of its namespace kube-system. A cluster with another UID is
// another cluster, whatever the UIDs of its pods.
func TestTheOtherNamesOfAClusterSayWhetherThePodHasGrants(t *testing.T) {
	f := newSetsFixture(t, provider.Done)
	expect := func(when string, want ...api.OtherName) {
		t.Helper()
		got, err := f.Store.View(t.Context()).OtherNames("c2", "uid")
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %s, %v", when, diff, err)
		}
	}
	expect("without an application")
	a, _, _, err := f.Request(t.Context(), api.ApplicationRequest{Cluster: "c1", Namespace: "shop", Pod: "web", PodUID: "uid", PodIPs: []string{"10.0.0.1"}, Set: "web"}, "server")
	if err != nil {
		t.Fatal(err)
	}
	expect("before the call", api.OtherName{Cluster: "c1", HasOrAwaitsGrant: true})
	f.run()
	expect("granted", api.OtherName{Cluster: "c1", HasOrAwaitsGrant: true})
	for name, uid := range map[string]string{"c1": "a", "c2": "b"} {
		if err := f.RegisterCluster(t.Context(), name, uid); err != nil {
			t.Fatal(err)
		}
	}
	expect("in a cluster with another UID")
	if _, err := f.ConfirmReport(t.Context(), "c2", api.ReportConfirmation{ClusterUID: "a"}, "admin"); err != nil {
		t.Fatal(err)
	}
	expect("in the renamed cluster", api.OtherName{Cluster: "c1", HasOrAwaitsGrant: true})
	f.revoke(a.ID)
	expect("revoked", api.OtherName{Cluster: "c1"})

	f.provider.outcome = provider.Denied
	f.request("web")
	expect("denied under the same name later", api.OtherName{Cluster: "c1"})
}
