package centre

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	double "github.com/breakwater-dev/breakwater/test/provider"
)

func TestALeakIsCountedReportedAndHealed(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		w := start(t, address)
		// The leak is not tried again before the new pod asks.
		w.register(func(p *api.Provider) { p.Retry = api.Retry{MaxCalls: 2, BackoffSeconds: 2} }, "web", "db")
		a := w.until(w.ask(pod(1, "web")).ID, api.Granted)
		w.double.SetFaults(double.Faults{Status: http.StatusBadGateway})
		w.must(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil)
		leaked := w.until(a.ID, api.Leaked)
		if p := leaked.Permissions[0]; p.State != api.Leaked || p.NextTry == nil || p.Calls < 2 || !strings.Contains(p.Message, "502") {
			t.Errorf("leaked: %+v", p)
		}
		if status, _ := w.do(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil); status != http.StatusOK {
			t.Errorf("revoke what is leaked: %d", status)
		}
		if text := w.metrics(); !strings.Contains(text, `permissioncentre_leaked_grants{provider="double"} 1`) {
			t.Error("the leak is not counted")
		}

		// The address comes back in another pod: it is told so, and is granted.
		w.double.SetFaults(double.Faults{})
		next := pod(2, "web")
		next.PodIPs = pod(1, "web").PodIPs
		b := w.ask(next)
		if len(b.Leaked) == 0 || b.Leaked[0].Application != a.ID || b.Leaked[0].Permission != "db" || b.Leaked[0].Pod != "pod-1" {
			t.Errorf("what the new pod is told: %+v", b.Leaked)
		}
		if text := w.metrics(); !strings.Contains(text, `permissioncentre_leaked_address_reused_total{permission="db"} 1`) {
			t.Error("the address is not reported")
		}
		w.until(b.ID, api.Granted)
		// The centre goes on trying, but does not take from the new pod what it has now.
		eventually(t, 40*time.Second, "the leak stands back", func() bool {
			var now api.Application
			w.must(serverToken, "GET", "/v1/applications/"+a.ID, nil, &now)
			return now.State == api.Leaked && now.Permissions[0].Reason == "HeldByAnotherPod" || now.State == api.Revoked
		})
		w.must(serverToken, "POST", "/v1/applications/"+b.ID+"/revoke", nil, nil)
		w.until(b.ID, api.Revoked)
		w.until(a.ID, api.Revoked)
		if held := w.double.Stats().Held; len(held) != 0 {
			t.Errorf("still held: %+v", held)
		}
	})
}

func TestAProviderThatCannotRevokeLeaksUntilItCan(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		w := start(t, address)
		w.register(func(p *api.Provider) { p.CanRevoke = false }, "web", "db")
		a := w.until(w.ask(pod(1, "web")).ID, api.Granted)
		// Never granted: nothing leaks.
		w.double.SetFaults(double.Faults{Delay: 300})
		early := w.ask(pod(2, "web"))
		w.must(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil)
		leaked := w.until(a.ID, api.Leaked)
		if p := leaked.Permissions[0]; p.Reason != "ProviderCannotRevoke" || p.NextTry != nil {
			t.Errorf("leaked: %+v", p)
		}
		w.must(serverToken, "POST", "/v1/applications/"+early.ID+"/revoke", nil, nil)
		// Its provider is still needed to take that back.
		if status, problem := w.do(adminToken, "DELETE", "/v1/providers/double", nil, nil, "If-Match", `"1"`); status != 409 || !strings.Contains(problem.Message, "1 permissions") {
			t.Errorf("delete the provider: %d %+v", status, problem)
		}
		var p api.Provider
		w.must(adminToken, "GET", "/v1/providers/double", nil, &p)
		p.CanRevoke = true
		w.must(adminToken, "PUT", "/v1/providers/double", p, nil, "If-Match", `"1"`)
		w.until(a.ID, api.Revoked)
	})
}

func TestANodesGrantGoesWithItsLastPod(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		w := start(t, address)
		w.register(func(p *api.Provider) {
			p.NodeScoped = true
			p.HTTP.Grant.Body.(map[string]any)["pod"] = "node"
			p.HTTP.Revoke.Path = "/grants?ip=${ip}&permission=${parameters['name']}&pod=node"
		}, "web", "db")
		onNode := func(n int) api.ApplicationRequest {
			r := pod(n, "web")
			r.HostNetwork, r.PodIPs, r.NodeIPs = true, []string{"192.168.0.1"}, []string{"192.168.0.1"}
			return r
		}
		a, b := w.until(w.ask(onNode(1)).ID, api.Granted), w.until(w.ask(onNode(2)).ID, api.Granted)
		w.must(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil)
		if gone := w.until(a.ID, api.Revoked); gone.Permissions[0].Reason != "HeldByAnotherPodOnNode" {
			t.Errorf("the first pod: %+v", gone.Permissions[0])
		}
		if held := len(w.double.Stats().Held); held != 1 {
			t.Errorf("%d are held while a pod lives", held)
		}
		w.must(serverToken, "POST", "/v1/applications/"+b.ID+"/revoke", nil, nil)
		w.until(b.ID, api.Revoked)
		if held := len(w.double.Stats().Held); held != 0 {
			t.Errorf("%d are held after the last pod", held)
		}
	})
}

func TestAPodWithItsNodesAddressGetsNoPodsGrant(t *testing.T) {
	w := start(t, "sqlite:"+t.TempDir()+"/centre.db")
	w.register(nil, "web", "db")
	r := pod(1, "web")
	r.HostNetwork = true
	if status, problem := w.do(serverToken, "POST", "/v1/applications", r, nil); status != 400 || problem.Field != "hostNetwork" {
		t.Errorf("%d %+v", status, problem)
	}
}

// metrics reads the admin interface.
func (w *world) metrics() string {
	w.t.Helper()
	answer := httptest.NewRecorder()
	w.centre.adminHandler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return answer.Body.String()
}
