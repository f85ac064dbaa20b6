package centre

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// grantMany grants a set to n pods, whose attempts are older than a list of pods.
func (w *fixture) grantMany(n int) (ids []string) {
	w.t.Helper()
	w.register(nil, "web", "db")
	for i := range n {
		ids = append(ids, w.waitForState(w.request(podRequest(i, "web")).ID, api.Granted).ID)
	}
	w.ageApplications(5 * time.Minute)
	return ids
}

// livePods are the pods of podRequest from first on, below end.
func livePods(first, end int) []api.LivePod {
	pods := []api.LivePod{}
	for n := first; n < end; n++ {
		r := podRequest(n, "web")
		pods = append(pods, api.LivePod{UID: r.PodUID, IPs: r.PodIPs})
	}
	return pods
}

func (w *fixture) report(r api.PodReport) api.PodReportResult {
	w.t.Helper()
	var result api.PodReportResult
	w.mustDo(serverToken, "POST", "/v1/clusters/c1/pods/reconcile", r, &result)
	return result
}

func (w *fixture) cluster() api.Cluster {
	w.t.Helper()
	var cluster api.Cluster
	w.mustDo(serverToken, "GET", "/v1/clusters/c1", nil, &cluster)
	return cluster
}

func TestAReportThatRevokesTooManyGrantsNeedsAConfirmation(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		const pods = 40
		w := newFixture(t, address)
		ids := w.grantMany(pods)
		few := api.PodReport{ClusterUID: "c1-uid", Observed: time.Now(), Pods: livePods(0, 10)}
		first, second := few, few
		first.Through, first.Pods = "uid-00019", livePods(0, 5)
		second.After, second.Pods = "uid-00019", livePods(20, 25)
		// Each page would revoke 15 of 20 applications.
		for name, r := range map[string]api.PodReport{"first page": first, "second page": second} {
			if result := w.report(r); result.Revoked != 0 || result.Held != 15 || result.Checked != 20 {
				t.Errorf("%s: %+v, want 15 held", name, result)
			}
		}
		if result := w.report(few); result.Revoked != 0 || result.Held != 30 || len(result.Applications) != 30 {
			t.Errorf("one page: %+v, want 30 held", result)
		}
		if c := w.cluster(); c.Held != 30 || c.UID != "c1-uid" || c.Reported == nil {
			t.Errorf("state of the reports: %+v, want 30 held", c)
		}
		confirm := func(token string, r api.ReportConfirmation) (int, api.Error) {
			return w.do(token, "POST", "/v1/clusters/c1/pods/confirm", r, nil)
		}
		if status, problem := confirm(serverToken, api.ReportConfirmation{Revoke: 30}); status != http.StatusForbidden || !strings.Contains(problem.Message, "admin") {
			t.Errorf("confirmation by a component: %d %+v, want 403", status, problem)
		}
		if status, problem := confirm(adminToken, api.ReportConfirmation{}); status != http.StatusBadRequest || problem.Field != "revoke" {
			t.Errorf("empty confirmation: %d %+v, want 400", status, problem)
		}
		if status, _ := confirm(adminToken, api.ReportConfirmation{Revoke: 30}); status != http.StatusOK {
			t.Errorf("confirmation: %d, want 200", status)
		}
		// The page would revoke 31 applications, but the admin has confirmed 30.
		if result := w.report(api.PodReport{ClusterUID: "c1-uid", Observed: time.Now(), Pods: livePods(0, 9)}); result.Revoked != 0 || result.Held != 31 {
			t.Errorf("more than confirmed: %+v, want 31 held", result)
		}
		if result := w.report(few); result.Revoked != 30 || result.Held != 0 {
			t.Errorf("after the confirmation: %+v, want 30 revoked", result)
		}
		for _, id := range ids[10:] {
			w.waitForState(id, api.Revoked)
		}
		if grants := len(w.double.Stats().Current); grants != 10 {
			t.Errorf("the provider has %d grants, want 10", grants)
		}
		if c := w.cluster(); c.Held != 0 || c.Confirmed != 0 {
			t.Errorf("state of the reports: %+v, want nothing held and the confirmation used up", c)
		}
		var audit api.List[api.AuditEntry]
		w.mustDo(adminToken, "GET", "/v1/audit?kind=cluster", nil, &audit)
		if len(audit.Items) != 1 || audit.Items[0].Who != "alice" || !strings.Contains(audit.Items[0].After, `"confirmed":30`) {
			t.Errorf("audit %+v", audit.Items)
		}
		if _, body := w.adminGet("/metrics"); !strings.Contains(body, `breakwater_permission_centre_pod_report_pages_total{cluster="c1",result="held"} 4`) {
			t.Error("the metrics lack 4 held pages")
		}
	})
}

// Two clusters with one name would revoke each other's grants.
func TestAReportOfAnotherClusterWithTheSameNameIsRejected(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.grantMany(3)
		if _, body := w.adminGet("/metrics"); !strings.Contains(body, `breakwater_permission_centre_last_pod_report_timestamp_seconds{cluster="c1"} 0`) {
			t.Error("the metrics lack a cluster that never reported")
		}
		began := time.Now()
		w.report(api.PodReport{ClusterUID: "c1-uid", Observed: time.Now(), Pods: livePods(0, 3)})
		if c := w.cluster(); c.Reported == nil || c.Reported.Before(began.Add(-time.Second)) {
			t.Errorf("state of the reports: %+v", c)
		}
		other := api.PodReport{ClusterUID: "other-uid", Observed: time.Now(), Empty: true}
		status, problem := w.do(serverToken, "POST", "/v1/clusters/c1/pods/reconcile", other, nil)
		if status != http.StatusForbidden || problem.Field != "clusterUID" || !strings.Contains(problem.Message, "c1-uid") || !strings.Contains(problem.Message, "config-permission") {
			t.Errorf("report of another cluster: %d %+v, want 403", status, problem)
		}
		if grants := len(w.double.Stats().Current); grants != 3 {
			t.Errorf("the provider has %d grants, want 3", grants)
		}
		// The other cluster replaces the first.
		w.mustDo(adminToken, "POST", "/v1/clusters/c1/pods/confirm", api.ReportConfirmation{ClusterUID: "other-uid"}, nil)
		if result := w.report(other); result.Revoked != 3 {
			t.Errorf("report of the cluster that has the name now: %+v, want 3 revoked", result)
		}
	})
}

// Otherwise the first cluster would revoke the grants of the other one's pods, which it
// does not list.
func TestARequestOfAnotherClusterWithTheSameNameIsRejected(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.register(nil, "web", "db")
		request := func(n int, uid string) (int, api.Error) {
			return w.do(serverToken, "POST", "/v1/applications?clusterUID="+uid, podRequest(n, "web"), nil)
		}
		if status, problem := request(0, "c1-uid"); status != http.StatusCreated {
			t.Errorf("first request: %d %+v, want 201", status, problem)
		}
		status, problem := request(1, "other-uid")
		if status != http.StatusForbidden || problem.Field != "clusterUID" || !strings.Contains(problem.Message, "c1-uid") {
			t.Errorf("request of another cluster: %d %+v, want 403", status, problem)
		}
		if c := w.cluster(); c.UID != "c1-uid" || c.Reported != nil {
			t.Errorf("state of the reports: %+v", c)
		}
		w.mustDo(adminToken, "POST", "/v1/clusters/c1/pods/confirm", api.ReportConfirmation{ClusterUID: "other-uid"}, nil)
		if status, problem := request(1, "other-uid"); status != http.StatusCreated {
			t.Errorf("request of the cluster that has the name now: %d %+v, want 201", status, problem)
		}
	})
}
