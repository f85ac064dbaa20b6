package lifecycle_test

import (
	"slices"
	"testing"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
)

// Nobody reported that the first pod ended: its finalizer was removed.
func TestAPodWithTheAddressOfAnotherPodRevokesItsGrants(t *testing.T) {
	for name, tc := range map[string]struct {
		after api.ApplicationRequest
		want  api.State
		calls []provider.Op
	}{
		"a pod with its address":             {after: api.ApplicationRequest{PodUID: "second", PodIPs: []string{"10.0.0.1"}}, want: api.Revoked, calls: []provider.Op{provider.Grant, provider.Revoke, provider.Grant}},
		"a pod with one of its addresses":    {after: api.ApplicationRequest{PodUID: "second", PodIPs: []string{"10.0.0.1", "fd00::1"}}, want: api.Revoked},
		"a pod with another address":         {after: api.ApplicationRequest{PodUID: "second", PodIPs: []string{"10.0.0.2"}}, want: api.Granted},
		"a pod of another cluster":           {after: api.ApplicationRequest{Cluster: "c2", PodUID: "second", PodIPs: []string{"10.0.0.1"}}, want: api.Granted},
		"a pod with the network of its node": {after: api.ApplicationRequest{PodUID: "second", PodIPs: []string{"10.0.0.1"}, HostNetwork: true, NodeIPs: []string{"10.0.0.1"}}, want: api.Granted},
		"another set of the same pod":        {after: api.ApplicationRequest{PodUID: "first", PodIPs: []string{"10.0.0.1"}, Set: "web"}, want: api.Granted},
	} {
		t.Run(name, func(t *testing.T) {
			f := newSetsFixture(t, provider.Done)
			if tc.after.HostNetwork {
				f.updateProvider(func(p *api.Provider) { p.NodeScoped = true })
			}
			request := func(r api.ApplicationRequest) string {
				r.Namespace, r.Pod = "shop", r.PodUID
				if r.Cluster == "" {
					r.Cluster = "c1"
				}
				if r.Set == "" {
					r.Set = "jobs"
				}
				a, _, _, err := f.Request(t.Context(), r, "server")
				if err != nil {
					t.Fatal(err)
				}
				f.run()
				return a.ID
			}
			first := request(api.ApplicationRequest{PodUID: "first", PodIPs: []string{"10.0.0.1"}, NodeIPs: tc.after.NodeIPs, HostNetwork: tc.after.HostNetwork})
			request(tc.after)
			if got, err := f.Store.View(t.Context()).Application(first); err != nil || got.State != tc.want {
				t.Errorf("%v %v, want %s", got.State, err, tc.want)
			}
			if tc.calls != nil && !slices.Equal(tc.calls, f.provider.calls) {
				t.Errorf("calls %v, want %v", f.provider.calls, tc.calls)
			}
		})
	}
}

func TestALateRequestRevokesNothingOfTheNextPod(t *testing.T) {
	f := newSetsFixture(t, provider.Done)
	request := func(uid, set string) (string, error) {
		a, _, _, err := f.Request(t.Context(), api.ApplicationRequest{Cluster: "c1", Namespace: "shop", Pod: uid, PodUID: uid, PodIPs: []string{"10.0.0.1"}, Set: set}, "server")
		f.run()
		return a.ID, err
	}
	if _, err := request("first", "jobs"); err != nil {
		t.Fatal(err)
	}
	second, err := request("second", "jobs")
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"web", "jobs"} {
		if _, err := request("first", set); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.RevokePod(t.Context(), api.RevokeRequest{Cluster: "c1", PodUID: "third"}, "controller"); err != nil {
		t.Fatal(err)
	}
	if _, err := request("third", "jobs"); err == nil {
		t.Error("a request of a pod that has ended was accepted")
	}
	if got, err := f.Store.View(t.Context()).Application(second); err != nil || got.State != api.Granted {
		t.Errorf("the next pod is %v %v, want %s", got.State, err, api.Granted)
	}
}
