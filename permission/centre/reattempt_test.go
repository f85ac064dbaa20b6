package centre

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/permission/api"
	double "github.com/breakwater-dev/breakwater/test/provider"
)

// A pod whose sandbox is made anew may get the address that it had before.
func TestAnAddressThatComesBackToItsPodIsGrantedAnew(t *testing.T) {
	for name, tc := range map[string]struct {
		provider func(*api.Provider)
		// left is what the first address ends in, held what the provider has then.
		left api.State
		held int
	}{
		"what was granted is taken back": {nil, api.Revoked, 1},
		"the provider cannot revoke":     {func(p *api.Provider) { p.CanRevoke = false }, api.Leaked, 2},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, address string) {
				w := start(t, address)
				w.register(tc.provider, "web", "db", "cache")
				here, there := pod(1, "web"), pod(1, "web")
				there.PodIPs = []string{"10.9.9.9"}
				for attempt := 1; attempt <= 3; attempt++ {
					a := w.until(w.ask(here).ID, api.Granted)
					if a.Attempt != attempt || len(a.Permissions) != 2 {
						t.Fatalf("attempt %d: %+v", attempt, a)
					}
					w.must(serverToken, "POST", "/v1/applications/revoke", api.RevokeRequest{Cluster: "c1", PodUID: "uid-00001", KeepIPs: there.PodIPs}, nil)
					w.until(a.ID, tc.left)
					b := w.until(w.ask(there).ID, api.Granted)
					if held := w.double.Stats().Held; len(held) != 2*tc.held {
						t.Errorf("attempt %d, at the other address: %+v", attempt, held)
					}
					w.must(serverToken, "POST", "/v1/applications/revoke", api.RevokeRequest{Cluster: "c1", PodUID: "uid-00001", KeepIPs: here.PodIPs}, nil)
					w.until(b.ID, tc.left)
				}
				a := w.until(w.ask(here).ID, api.Granted)
				var h api.History
				w.must(serverToken, "GET", "/v1/applications/"+a.ID+"/history", nil, &h)
				ended := map[int]api.State{}
				for _, e := range h.Items {
					if e.Permission == "" && (e.To == api.Revoked || e.To == api.Leaked || e.To == api.Granted) {
						ended[e.Attempt] = e.To
					}
				}
				if diff := cmp.Diff(map[int]api.State{1: tc.left, 2: tc.left, 3: tc.left, 4: api.Granted}, ended); diff != "" {
					t.Errorf("what the history says of the attempts: %s", diff)
				}
			})
		})
	}
}

func TestWhatIsBeingTakenBackIsNotGrantedAnewBeforeThat(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		w := start(t, address)
		w.register(nil, "web", "db")
		a := w.until(w.ask(pod(1, "web")).ID, api.Granted)
		w.double.SetFaults(double.Faults{Delay: 600})
		w.must(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil)
		if status, problem := w.do(serverToken, "POST", "/v1/applications", pod(1, "web"), nil); status != http.StatusConflict {
			t.Errorf("while it is taken back: %d %+v", status, problem)
		}
		w.until(a.ID, api.Revoked)
		w.double.SetFaults(double.Faults{})
		if status, problem := w.do(serverToken, "POST", "/v1/applications", pod(1, "web"), nil); status != http.StatusAccepted {
			t.Errorf("when it was: %d %+v", status, problem)
		}
		w.until(a.ID, api.Granted)
		b := w.double.Stats()
		if len(b.Held) != 1 || b.Granted != 2 || b.Revoked != 1 || b.Duplicates+b.Repeats != 0 {
			t.Errorf("books: %+v", b)
		}
		// The pods were listed while it had another address.
		w.must(serverToken, "POST", "/v1/clusters/c1/pods/reconcile", api.PodReport{Observed: time.Now(),
			Pods: []api.LivePod{{UID: "uid-00001", IPs: []string{"10.9.9.9"}}}}, nil)
		w.until(a.ID, api.Granted)
	})
}

// What the set has by now counts, not what it had when it was granted first.
func TestASetThatChangedMeanwhileIsGrantedAsItIs(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		w := start(t, address)
		w.register(nil, "web", "db", "cache")
		a := w.until(w.ask(pod(1, "web")).ID, api.Granted)
		w.must(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil)
		w.until(a.ID, api.Revoked)
		w.must(ownerToken, "PUT", "/v1/permissionsets/web", api.PermissionSet{Meta: api.Meta{Owner: "team-a"}, Permissions: []string{"cache"}}, nil, "If-Match", `"1"`)
		w.ask(pod(1, "web"))
		w.until(a.ID, api.Granted)
		if diff := cmp.Diff([]double.Entry{{IP: "10.0.0.2", Permission: "cache", Pod: "uid-00001"}}, w.double.Stats().Held); diff != "" {
			t.Error(diff)
		}
	})
}
