package centre

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
	double "github.com/breakwater-dev/breakwater/test/provider"
)

func TestALeakIsCountedReportedAndRevoked(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		// The backoff is long enough that the new pod requests before the next retry.
		w.register(func(p *api.Provider) { p.Retry = api.Retry{MaxCalls: 2, BackoffSeconds: 2} }, "web", "db")
		a := w.waitForState(w.request(podRequest(1, "web")).ID, api.Granted)
		w.double.SetFaults(double.Faults{Status: http.StatusBadGateway})
		w.mustDo(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil)
		leaked := w.waitForState(a.ID, api.Leaked)
		if p := leaked.Permissions[0]; p.State != api.Leaked || p.NextTry == nil || p.Calls < 2 || !strings.Contains(p.Message, "502") {
			t.Errorf("leaked permission: %+v", p)
		}
		if status, _ := w.do(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil); status != http.StatusOK {
			t.Errorf("revoke of a leaked application: status %d", status)
		}
		if text := w.scrapeMetrics(); !strings.Contains(text, `breakwater_permission_centre_leaked_grants{provider="double"} 1`) {
			t.Error("the leak is not counted")
		}

		// Another pod gets the address: its application lists the leak and is granted.
		w.double.SetFaults(double.Faults{})
		next := podRequest(2, "web")
		next.PodIPs = podRequest(1, "web").PodIPs
		b := w.request(next)
		if len(b.Leaked) == 0 || b.Leaked[0].Application != a.ID || b.Leaked[0].Permission != "db" || b.Leaked[0].Pod != "pod-1" {
			t.Errorf("leaked grants of the new application: %+v", b.Leaked)
		}
		if text := w.scrapeMetrics(); !strings.Contains(text, `breakwater_permission_centre_leaked_grants_at_new_pods_total{permission="db"} 1`) {
			t.Error("the reused address is not counted")
		}
		w.waitForState(b.ID, api.Granted)
		// The centre retries, but does not revoke the permission of the new pod.
		eventually(t, 40*time.Second, "the leak waits for the new pod", func() bool {
			var now api.Application
			w.mustDo(serverToken, "GET", "/v1/applications/"+a.ID, nil, &now)
			return now.State == api.Leaked && now.Permissions[0].Reason == "HeldByAnotherPod" || now.State == api.Revoked
		})
		w.mustDo(serverToken, "POST", "/v1/applications/"+b.ID+"/revoke", nil, nil)
		w.waitForState(b.ID, api.Revoked)
		w.waitForState(a.ID, api.Revoked)
		if grants := w.double.Stats().Current; len(grants) != 0 {
			t.Errorf("the provider still has grants: %+v", grants)
		}
	})
}

func TestGrantsLeakUntilTheirProviderCanRevoke(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.register(func(p *api.Provider) { p.CanRevoke = false }, "web", "db")
		a := w.waitForState(w.request(podRequest(1, "web")).ID, api.Granted)
		// An application that was never granted does not leak.
		release := w.double.Hold()
		defer release()
		early := w.request(podRequest(2, "web"))
		w.mustDo(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil)
		leaked := w.waitForState(a.ID, api.Leaked)
		if p := leaked.Permissions[0]; p.Reason != "ProviderCannotRevoke" || p.NextTry != nil {
			t.Errorf("leaked permission: %+v", p)
		}
		w.mustDo(serverToken, "POST", "/v1/applications/"+early.ID+"/revoke", nil, nil)
		// A provider with leaked grants cannot be deleted.
		if status, problem := w.do(adminToken, "DELETE", "/v1/providers/double", nil, nil, "If-Match", `"1"`); status != 409 || !strings.Contains(problem.Message, "1 permissions") {
			t.Errorf("delete of the provider: %d %+v", status, problem)
		}
		var p api.Provider
		w.mustDo(adminToken, "GET", "/v1/providers/double", nil, &p)
		p.CanRevoke = true
		w.mustDo(adminToken, "PUT", "/v1/providers/double", p, nil, "If-Match", `"1"`)
		release()
		w.waitForState(a.ID, api.Revoked)
	})
}

// The replica that changed the provider may stop before it has scheduled all leaks.
func TestALeakIsRevokedAfterARestartIfItsProviderCanRevoke(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.register(func(p *api.Provider) { p.CanRevoke = false }, "web", "db")
		a := w.waitForState(w.request(podRequest(1, "web")).ID, api.Granted)
		w.mustDo(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil)
		w.waitForState(a.ID, api.Leaked)
		if err := w.centre.store.Write(t.Context(), func(tx store.Tx) error {
			o, err := tx.LockObject(store.KindProvider, "double")
			if err != nil {
				return err
			}
			o.Body = bytes.Replace(o.Body, []byte(`"canRevoke":false`), []byte(`"canRevoke":true`), 1)
			o.Version++
			return tx.Update(o, o.Version-1)
		}); err != nil {
			t.Fatal(err)
		}
		w.stop()
		w.startReplica(testConfig(t, address))
		w.waitForState(a.ID, api.Revoked)
	})
}

// nodeScoped lets the provider grant to nodes.
func nodeScoped(p *api.Provider) {
	p.NodeScoped = true
	p.HTTP.Grant.Body.(map[string]any)["pod"] = "node"
	p.HTTP.Revoke.Path = "/grants?ip=${ip}&permission=${parameters['name']}&pod=node"
}

// onNode is the request of a pod with the address of the node.
func onNode(n int) api.ApplicationRequest {
	r := podRequest(n, "web")
	r.HostNetwork, r.PodIPs, r.NodeIPs = true, []string{"192.168.0.1"}, []string{"192.168.0.1"}
	return r
}

func TestANodeScopedGrantIsRevokedWithTheLastPod(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.register(nodeScoped, "web", "db")
		a, b := w.waitForState(w.request(onNode(1)).ID, api.Granted), w.waitForState(w.request(onNode(2)).ID, api.Granted)
		w.mustDo(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil)
		if revoked := w.waitForState(a.ID, api.Revoked); revoked.Permissions[0].Reason != "HeldByAnotherPodOnNode" {
			t.Errorf("application of the first pod: %+v", revoked.Permissions[0])
		}
		if grants := len(w.double.Stats().Current); grants != 1 {
			t.Errorf("the provider has %d grants while a pod exists, want 1", grants)
		}
		w.mustDo(serverToken, "POST", "/v1/applications/"+b.ID+"/revoke", nil, nil)
		w.waitForState(b.ID, api.Revoked)
		if grants := len(w.double.Stats().Current); grants != 0 {
			t.Errorf("the provider has %d grants after the last pod, want 0", grants)
		}
	})
}

// A node of AWS has an InternalIP for each address of its network interfaces.
func TestAPodOfANodeWithManyAddressesGetsANodeScopedGrant(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.register(nodeScoped, "web", "db")
		r := onNode(1)
		for n := range 255 {
			r.NodeIPs = append(r.NodeIPs, fmt.Sprintf("2001:db8:ffff:ffff:ffff:ffff:ffff:%x", 0x1000+n))
		}
		a := w.waitForState(w.request(r).ID, api.Granted)
		w.mustDo(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil)
		w.waitForState(a.ID, api.Revoked)
	})
}

func TestANodeScopedGrantWithFormerParametersIsRevoked(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.register(nodeScoped, "web", "db")
		a := w.waitForState(w.request(onNode(1)).ID, api.Granted).ID
		var p api.Permission
		w.mustDo(adminToken, "GET", "/v1/permissions/db", nil, &p)
		p.Parameters["name"] = "db2"
		w.mustDo(adminToken, "PUT", "/v1/permissions/db", p, nil, "If-Match", `"1"`)
		b := w.waitForState(w.request(onNode(2)).ID, api.Granted).ID
		w.mustDo(serverToken, "POST", "/v1/applications/"+a+"/revoke", nil, nil)
		w.waitForState(a, api.Revoked)
		if grants := w.double.Stats().Current; len(grants) != 1 || grants[0].Permission != "db2" {
			t.Errorf("the provider has %+v after the first pod, want db2", grants)
		}
		w.mustDo(serverToken, "POST", "/v1/applications/"+b+"/revoke", nil, nil)
		w.waitForState(b, api.Revoked)
		if grants := w.double.Stats().Current; len(grants) != 0 {
			t.Errorf("the provider has %+v after the last pod", grants)
		}
	})
}

func TestAHostNetworkPodGetsOnlyNodeScopedGrants(t *testing.T) {
	w := newFixture(t, "sqlite:"+t.TempDir()+"/centre.db")
	w.register(nil, "web", "db")
	r := podRequest(1, "web")
	r.HostNetwork = true
	if status, problem := w.do(serverToken, "POST", "/v1/applications", r, nil); status != 400 || problem.Field != "hostNetwork" {
		t.Errorf("%d %+v", status, problem)
	}
}

// scrapeMetrics reads /metrics.
func (w *fixture) scrapeMetrics() string {
	w.t.Helper()
	answer := httptest.NewRecorder()
	w.centre.adminHandler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return answer.Body.String()
}

// A wrong URL is answered 404, which does not prove that the grant does not exist.
func TestAGrantWhoseRevocationHasAWrongURLIsLeaked(t *testing.T) {
	w := newFixture(t, "sqlite:"+t.TempDir()+"/centre.db")
	w.register(func(p *api.Provider) { p.Retry.MaxCalls, p.HTTP.Revoke.Path = 2, "/v9/grants?ip=${ip}" }, "web", "db")
	a := w.waitForState(w.request(podRequest(1, "web")).ID, api.Granted)
	w.mustDo(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil)
	leaked := w.waitForState(a.ID, api.Leaked).Permissions[0]
	if grants := len(w.double.Stats().Current); grants != 1 || leaked.Reason != "ProviderMisconfigured" || !strings.Contains(leaked.Message, "set http.revoke.granted") {
		t.Errorf("%d grants at the provider, %+v", grants, leaked)
	}
}
