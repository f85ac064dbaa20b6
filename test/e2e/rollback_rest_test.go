//go:build e2e

package e2e

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/servingcert"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/e2e/kubectl"
)

// rollbackAPIURL is the address of the rollback API in the cluster.
const rollbackAPIURL = "https://openapi.altershieldoperator-system.svc.cluster.local/openapi/altershield"

// rollbackResponse is a response of the rollback API.
type rollbackResponse struct {
	Code        int    `json:"code"`
	Message     string `json:"message"`
	Field       string `json:"field"`
	ToVersion   string `json:"toVersion"`
	Deployments []struct {
		DeploymentName    string `json:"deploymentName"`
		Namespace         string `json:"namespace"`
		NowReplicaSet     string `json:"nowReplicaSet"`
		HasSuccessVersion bool   `json:"hasSuccessVersion"`
		SuccessReplicaSet string `json:"successReplicaSet"`
		SuccessVersion    string `json:"successVersion"`
	} `json:"deployments"`
}

// rollbackAPIClient returns a client that trusts the CA of the rollback API. It reads the
// ConfigMap as a user without rights of its own.
func rollbackAPIClient(t *testing.T) *http.Client {
	t.Helper()
	ca := kubectl.Kubectl{}.Require(t, "", "-n", system, "get", "configmap", "openapi-ca", "-o", `jsonpath={.data.ca\.crt}`,
		"--as", "nobody", "--as-group", "system:authenticated")
	trust, transport := &servingcert.Bundle{}, &http.Transport{DisableKeepAlives: true}
	trust.Update(map[string]string{servingcert.BundleKey: ca})
	trust.Trust(transport)
	return &http.Client{Transport: transport}
}

// callRollbackAPI sends a request with a token; an empty token sends none.
func callRollbackAPI(t *testing.T, method, path, token, body string) (int, rollbackResponse) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, rollbackAPIURL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := rollbackAPIClient(t).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // the body was read
	var out rollbackResponse
	if err := json.NewDecoder(response.Body).Decode(&out); err != nil {
		t.Fatalf("%s %s: %d: %v", method, path, response.StatusCode, err)
	}
	return response.StatusCode, out
}

// createUser creates a ServiceAccount with roles in the namespace, and returns
// its token.
func (n *namespace) createUser(t *testing.T, name string, roles ...string) string {
	t.Helper()
	n.run(t, "create", "serviceaccount", name)
	for _, role := range roles {
		n.run(t, "create", "rolebinding", name+"-"+role, "--clusterrole="+role, "--serviceaccount="+n.name+":"+name)
	}
	return strings.TrimSpace(n.run(t, "create", "token", name, "--audience", "breakwater-openapi"))
}

func (n *namespace) rollbackRequest(more string) string {
	return fmt.Sprintf(`{"namespace":%q,"deploymentName":"web"%s}`, n.name, more)
}

// rollbackByREST is requested by a user with no other right.
func rollbackByREST(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	// The rollout takes 40 s, so that the fail comes before its end on a slow machine.
	n.create(t, builder.Deployment("web", 4, builder.Simulated, builder.Paced(10)))
	n.awaitSavedTemplate(t, workload.Deployment, "web", 1)
	first := n.deployment(t, "web")
	n.release(t, "web", "v2")
	n.judgeByHand(t, n.awaitBatch(t, rolloutTimeout, "web", 1, "exists", exists), "unpass", "find error")
	held := n.awaitDeployment(t, shortTimeout, "web", "is held", func(d *appsv1.Deployment) bool { return isSuspended(d) && d.Spec.Paused })
	ann := n.createUser(t, "ann", "breakwater-rollback")

	good := first.Annotations[v1alpha1.VersionKey]
	status, list := callRollbackAPI(t, "GET", "/suspend/deployment?namespace="+n.name, ann, "")
	if status != http.StatusOK || list.Code != 0 || len(list.Deployments) != 1 {
		t.Fatalf("%d %+v", status, list)
	}
	d := list.Deployments[0]
	if d.DeploymentName != "web" || d.Namespace != n.name || !d.HasSuccessVersion || d.SuccessVersion != good ||
		d.SuccessReplicaSet == "" || d.NowReplicaSet == "" || d.NowReplicaSet == d.SuccessReplicaSet {
		t.Errorf("%+v", d)
	}

	status, dry := callRollbackAPI(t, "PUT", "/deployment/rollback?dryRun=true", ann, n.rollbackRequest(""))
	if status != http.StatusOK || dry.ToVersion != good {
		t.Errorf("dry run: %d %+v", status, dry)
	}
	if now := n.deployment(t, "web"); now.Annotations[v1alpha1.RollbackRequestAnnotation] != "" || now.Generation != held.Generation {
		t.Errorf("annotations after a dry run are %v", now.Annotations)
	}
	if status, old := callRollbackAPI(t, "PUT", "/deployment/rollback", ann, n.rollbackRequest(`,"attempt":1`)); status != http.StatusConflict ||
		!strings.Contains(old.Message, "at attempt 2") {
		t.Errorf("request for attempt 1: %d %+v", status, old)
	}

	status, done := callRollbackAPI(t, "PUT", "/deployment/rollback", ann, n.rollbackRequest(`,"attempt":2`))
	if status != http.StatusOK || done.Code != 0 || done.ToVersion != good {
		t.Fatalf("%d %+v", status, done)
	}
	n.unpace(t, "web")
	n.awaitAttempt(t, rolloutTimeout, workload.Deployment, "web", 3, v1alpha1.ReleaseSuccess)
	free := n.awaitDeployment(t, shortTimeout, "web", "is not suspended", isNotSuspended)
	if free.Annotations[v1alpha1.VersionKey] != good || free.Annotations[v1alpha1.RollbackRequestAnnotation] != "" {
		t.Errorf("annotations are %v", free.Annotations)
	}
	r := n.checkRollback(t, workload.Deployment, "web", v1alpha1.RollbackRequested, 2)
	user := "system:serviceaccount:" + n.name + ":ann"
	if r.User != user {
		t.Errorf("%+v", r)
	}
	n.awaitEvent(t, "web", v1alpha1.ReasonRollbackRequested, user+" requested it")
	if status, none := callRollbackAPI(t, "PUT", "/deployment/rollback", ann, n.rollbackRequest("")); status != http.StatusConflict {
		t.Errorf("rollback without a target: %d %+v", status, none)
	}
}

// rollbackAPIHasTLSOnly: plain HTTP is refused, and a client that does not trust the CA sends
// no request.
func rollbackAPIHasTLSOnly(t *testing.T, e *environment) {
	get := func(url string) (int, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer guessed")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	pods, err := e.pods(t.Context(), component("openapi"))
	if err != nil || len(pods) == 0 {
		t.Fatalf("%d pods, %v", len(pods), err)
	}
	const path = "/openapi/altershield/suspend/deployment"
	if status, err := get("http://" + pods[0].Status.PodIP + ":8443" + path); err != nil || status != http.StatusBadRequest {
		t.Errorf("plain HTTP is answered with %d, %v", status, err)
	}
	service, err := e.kube.CoreV1().Services(system).Get(t.Context(), "openapi", metav1.GetOptions{})
	if err != nil || len(service.Spec.Ports) != 1 || service.Spec.Ports[0].Port != 443 {
		t.Errorf("the ports of the Service are %v, want 443 only; %v", service.Spec.Ports, err)
	}
	var unknown x509.UnknownAuthorityError
	if status, err := get(rollbackAPIURL + "/suspend/deployment"); !errors.As(err, &unknown) {
		t.Errorf("a client that does not trust the CA is answered %d, %v", status, err)
	}
}

// rollbackByRESTDenied: requests without a valid token or without the right are
// rejected.
func rollbackByRESTDenied(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.create(t, builder.Deployment("web", 1, builder.Simulated))
	n.awaitSavedTemplate(t, workload.Deployment, "web", 1)
	bob := n.createUser(t, "bob", "view")
	for name, tc := range map[string]struct {
		method, path, token, body string
		status                    int
		says                      string
	}{
		"no token":                  {"PUT", "/deployment/rollback", "", n.rollbackRequest(""), 401, "send a Kubernetes token"},
		"invalid token":             {"PUT", "/deployment/rollback", "guessed", n.rollbackRequest(""), 401, "unknown to this cluster"},
		"token of a user with view": {"PUT", "/deployment/rollback", bob, n.rollbackRequest(""), 403, "bob may neither update"},
		"list of another namespace": {"GET", "/suspend/deployment?namespace=" + system, bob, "", 403, "may not list deployments.apps"},
		"list of all namespaces":    {"GET", "/suspend/deployment", bob, "", 403, "?namespace="},
		"body without a name":       {"PUT", "/deployment/rollback", bob, `{"namespace":"` + n.name + `"}`, 422, "deploymentName"},
	} {
		t.Run(name, func(t *testing.T) {
			status, got := callRollbackAPI(t, tc.method, tc.path, tc.token, tc.body)
			if status != tc.status || got.Code != tc.status || !strings.Contains(got.Message, tc.says) {
				t.Errorf("%d %+v", status, got)
			}
		})
	}
	if status, got := callRollbackAPI(t, "GET", "/suspend/deployment?namespace="+n.name, bob, ""); status != 200 || len(got.Deployments) != 0 {
		t.Errorf("list by a user with view: %d %+v", status, got)
	}
	if d := n.deployment(t, "web"); d.Annotations[v1alpha1.RollbackRequestAnnotation] != "" {
		t.Errorf("annotations are %v, want no rollback request", d.Annotations)
	}
}
