package centre

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/permission/api"
	double "github.com/breakwater-dev/breakwater/test/provider"
)

// A new sandbox of a pod may get an address that the pod had before.
func TestAnAddressThatReturnsToItsPodIsGrantedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		provider func(*api.Provider)
		// left is the final state of the first address, granted the number of addresses
		// with grants at the provider then.
		left    api.State
		granted int
	}{
		"the provider revokes":       {nil, api.Revoked, 1},
		"the provider cannot revoke": {func(p *api.Provider) { p.CanRevoke = false }, api.Leaked, 2},
	} {
		t.Run(name, func(t *testing.T) {
			eachStore(t, func(t *testing.T, address string) {
				w := newFixture(t, address)
				w.register(tc.provider, "web", "db", "cache")
				here, there := podRequest(1, "web"), podRequest(1, "web")
				there.PodIPs = []string{"10.9.9.9"}
				for attempt := 1; attempt <= 3; attempt++ {
					a := w.waitForState(w.request(here).ID, api.Granted)
					if a.Attempt != attempt || len(a.Permissions) != 2 {
						t.Fatalf("attempt %d: %+v", attempt, a)
					}
					w.mustDo(serverToken, "POST", "/v1/applications/revoke", api.RevokeRequest{Cluster: "c1", PodUID: "uid-00001", KeepIPs: there.PodIPs}, nil)
					w.waitForState(a.ID, tc.left)
					b := w.waitForState(w.request(there).ID, api.Granted)
					if grants := w.double.Stats().Current; len(grants) != 2*tc.granted {
						t.Errorf("attempt %d, grants of the provider with the other address: %+v", attempt, grants)
					}
					w.mustDo(serverToken, "POST", "/v1/applications/revoke", api.RevokeRequest{Cluster: "c1", PodUID: "uid-00001", KeepIPs: here.PodIPs}, nil)
					w.waitForState(b.ID, tc.left)
				}
				a := w.waitForState(w.request(here).ID, api.Granted)
				var h api.History
				w.mustDo(serverToken, "GET", "/v1/applications/"+a.ID+"/history", nil, &h)
				ended := map[int]api.State{}
				for _, e := range h.Items {
					if e.Permission == "" && (e.To == api.Revoked || e.To == api.Leaked || e.To == api.Granted) {
						ended[e.Attempt] = e.To
					}
				}
				if diff := cmp.Diff(map[int]api.State{1: tc.left, 2: tc.left, 3: tc.left, 4: api.Granted}, ended); diff != "" {
					t.Errorf("final states of the attempts in the history: %s", diff)
				}
			})
		})
	}
}

func TestARequestDuringRevocationIsRejected(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.register(nil, "web", "db")
		a := w.waitForState(w.request(podRequest(1, "web")).ID, api.Granted)
		release := w.double.Hold()
		defer release()
		w.mustDo(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil)
		if status, problem := w.do(serverToken, "POST", "/v1/applications", podRequest(1, "web"), nil); status != http.StatusConflict {
			t.Errorf("request while revoking: %d %+v", status, problem)
		}
		release()
		w.waitForState(a.ID, api.Revoked)
		if status, problem := w.do(serverToken, "POST", "/v1/applications", podRequest(1, "web"), nil); status != http.StatusAccepted {
			t.Errorf("request after the revocation: %d %+v", status, problem)
		}
		w.waitForState(a.ID, api.Granted)
		b := w.double.Stats()
		if len(b.Current) != 1 || b.Granted != 2 || b.Revoked != 1 || b.Duplicates+b.Repeats != 0 {
			t.Errorf("stats of the provider: %+v", b)
		}
		// A report lists the pod with its other address, shortly after the new attempt.
		w.mustDo(serverToken, "POST", "/v1/clusters/c1/pods/reconcile", api.PodReport{ClusterUID: "c1-uid", Observed: time.Now(),
			Pods: []api.LivePod{{UID: "uid-00001", IPs: []string{"10.9.9.9"}}}}, nil)
		w.waitForState(a.ID, api.Granted)
	})
}

func TestANewAttemptAfterRevocationGrantsTheCurrentSet(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.register(nil, "web", "db", "cache")
		a := w.waitForState(w.request(podRequest(1, "web")).ID, api.Granted)
		w.mustDo(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil)
		w.waitForState(a.ID, api.Revoked)
		w.mustDo(ownerToken, "PUT", "/v1/permissionsets/web", api.PermissionSet{Meta: api.Meta{Owner: "team-a"}, Permissions: []string{"cache"}, Pods: []api.PodPattern{{Namespace: "*"}}}, nil, "If-Match", `"1"`)
		w.request(podRequest(1, "web"))
		w.waitForState(a.ID, api.Granted)
		if diff := cmp.Diff([]double.Entry{{IP: "10.0.0.2", Permission: "cache", Pod: "uid-00001"}}, w.double.Stats().Current); diff != "" {
			t.Error(diff)
		}
	})
}

// The provider is down in the new attempt, so only the leaked grant has an id.
func TestALeakIsRevokedByItsIDAfterANewAttemptThatFailed(t *testing.T) {
	w := newFixture(t, "sqlite:"+t.TempDir()+"/centre.db")
	var down atomic.Bool
	revoked := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case down.Load():
			rw.WriteHeader(http.StatusServiceUnavailable)
		case r.Method == http.MethodDelete:
			revoked <- r.URL.Path
		default:
			_, _ = io.WriteString(rw, `{"id": 17}`)
		}
	}))
	t.Cleanup(server.Close)
	w.register(func(p *api.Provider) {
		p.Endpoint, p.Retry.MaxCalls = server.URL, 2
		p.HTTP.Grant.Keep, p.HTTP.Revoke.Path = map[string]string{"id": "body.id"}, "/grants/${int(kept.id)}"
	}, "web", "db")
	a := w.waitForState(w.request(podRequest(1, "web")).ID, api.Granted)
	down.Store(true)
	w.mustDo(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil)
	w.waitForState(a.ID, api.Leaked)
	eventually(t, 10*time.Second, "no revocation is being called", func() bool {
		status, _ := w.do(serverToken, "POST", "/v1/applications", podRequest(1, "web"), nil)
		return status == http.StatusAccepted
	})
	w.waitForState(a.ID, api.Failed)
	w.mustDo(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil)
	leaked := w.waitForState(a.ID, api.Leaked)
	if p := leaked.Permissions[0]; p.Reason != "ProviderError" {
		t.Fatalf("the revocation is not sent: %+v", p)
	}
	down.Store(false)
	w.waitForState(a.ID, api.Revoked)
	if got := <-revoked; got != "/grants/17" {
		t.Errorf("revoked %s", got)
	}
}

// A provider may be deleted when nothing is granted by it. Nothing would call it in a new attempt.
func TestANewAttemptWithADeletedProviderIsRejected(t *testing.T) {
	for name, tc := range map[string]struct {
		wrong string
		state api.State
	}{
		"after a denial":                     {"true", api.Denied},
		"after a leak of another permission": {"false", api.Leaked},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, "sqlite:"+t.TempDir()+"/centre.db")
			w.register(nil, "web", "db")
			other := double.Registration("other", w.providerURL, "platform")
			other.CanRevoke = false
			w.mustDo(adminToken, "POST", "/v1/providers", other, nil)
			w.mustDo(ownerToken, "POST", "/v1/permissions", api.Permission{Meta: api.Meta{Name: "cache", Owner: "team-a"}, Provider: "other",
				Parameters: map[string]string{"name": "cache"}}, nil)
			w.mustDo(ownerToken, "PUT", "/v1/permissions/db", api.Permission{Meta: api.Meta{Owner: "team-a"}, Provider: "double",
				Parameters: map[string]string{"name": "db", "wrong": tc.wrong}}, nil, "If-Match", `"1"`)
			set := api.PermissionSet{Meta: api.Meta{Owner: "team-a"}, Permissions: []string{"db", "cache"}, Pods: []api.PodPattern{{Namespace: "*"}}}
			w.mustDo(ownerToken, "PUT", "/v1/permissionsets/web", set, nil, "If-Match", `"1"`)
			id := w.request(podRequest(1, "web")).ID
			if tc.state == api.Leaked {
				w.waitForState(id, api.Granted)
				w.mustDo(serverToken, "POST", "/v1/applications/"+id+"/revoke", nil, nil)
			}
			w.waitForState(id, tc.state)
			set.Permissions = []string{"cache"}
			w.mustDo(ownerToken, "PUT", "/v1/permissionsets/web", set, nil, "If-Match", `"2"`)
			w.mustDo(ownerToken, "DELETE", "/v1/permissions/db", nil, nil, "If-Match", `"2"`)
			w.mustDo(adminToken, "DELETE", "/v1/providers/double", nil, nil, "If-Match", `"1"`)
			status, problem := w.do(serverToken, "POST", "/v1/applications", podRequest(1, "web"), nil)
			if status != http.StatusNotFound || problem.Field != "set" || !strings.Contains(problem.Message, "delete the pod") {
				t.Errorf("request: %d %+v", status, problem)
			}
			var a api.Application
			w.mustDo(serverToken, "GET", "/v1/applications/"+id, nil, &a)
			if a.State != tc.state || a.Attempt != 1 {
				t.Errorf("the application is %s in attempt %d: %s", a.State, a.Attempt, a.Message)
			}
		})
	}
}
