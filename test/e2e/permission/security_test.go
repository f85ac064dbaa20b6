//go:build e2e

package permission

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/e2e/faultinjection"
	"github.com/breakwater-dev/breakwater/test/provider"
)

// authorize sends the request of an init container from the node.
func authorize(t *testing.T, token string, sets ...string) (int, protocol.Answer) {
	t.Helper()
	status, raw, err := testCluster.Do(t.Context(), http.MethodPost, testCluster.Server+protocol.AuthorizePath, token, protocol.Request{Sets: sets})
	if err != nil {
		t.Fatal(err)
	}
	var answer protocol.Answer
	if err := json.Unmarshal(raw, &answer); err != nil {
		t.Fatalf("%d %s: %v", status, raw, err)
	}
	return status, answer
}

func boundTo(p *corev1.Pod) *authenticationv1.BoundObjectReference {
	return &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID}
}

// Tokens must not be readable on the network: neither service accepts plain HTTP, and
// only clients with the CA of Breakwater connect.
func TestTheCentreAndTheServerAcceptOnlyTLS(t *testing.T) {
	status := func(url string) (int, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	for service, url := range map[string]string{"permission-centre": testCluster.Centre, "init-action-server": testCluster.Server} {
		pods, err := faultinjection.Component(service).Pods(t.Context(), testCluster.Kube)
		if err != nil || len(pods) == 0 {
			t.Fatalf("%d pods of %s: %v", len(pods), service, err)
		}
		if code, err := status("http://" + pods[0].Status.PodIP + ":8443/v1/applications"); err != nil || code != http.StatusBadRequest {
			t.Errorf("%s answers plain HTTP with %d, %v", service, code, err)
		}
		var unknown x509.UnknownAuthorityError
		if code, err := status(url + "/v1/applications"); !errors.As(err, &unknown) {
			t.Errorf("a client without the CA: %s answers %d, %v", service, code, err)
		}
		if code, raw, err := testCluster.Do(t.Context(), http.MethodGet, url+"/v1/applications", "", nil); err != nil || code == http.StatusBadRequest {
			t.Errorf("a client with the CA: %s answers %d %s, %v", service, code, raw, err)
		}
	}
}

// The server trusts the token and the API server, not the request.
func TestUnauthorizedRequestsAreRejected(t *testing.T) {
	n := newNamespace(t, enabled)
	setFaults(t, provider.Faults{DecideAfter: 3_600_000})
	n.mustApply(t, podWith("web", "web", "Always", "sleep 1000"))
	p := n.get(t, "web")
	n.waitForReason(t, "web", podmeta.ReasonPermissionApplying)
	token := func(bound *authenticationv1.BoundObjectReference, audience string) string {
		token, err := testCluster.TokenOf(t.Context(), n.name, "default", bound, audience)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	stolen := token(boundTo(p), protocol.TokenAudience)
	n.mustApply(t, podWith("gone", "web", "Always", "sleep 1000"))
	deleted := n.get(t, "gone")
	dead := token(boundTo(deleted), protocol.TokenAudience)
	n.run(t, "delete", "pod", "gone", "--timeout=60s")
	calls := len(applications(t, p))
	for name, tc := range map[string]struct {
		token  string
		sets   []string
		status int
		reason string
	}{
		"no token":                             {"", []string{"web"}, http.StatusUnauthorized, "Unauthorized"},
		"an invalid token":                     {"made-up", []string{"web"}, http.StatusUnauthorized, "Unauthorized"},
		"a token for the API server":           {token(boundTo(p), ""), []string{"web"}, http.StatusUnauthorized, "Unauthorized"},
		"a token without a pod":                {token(nil, protocol.TokenAudience), []string{"web"}, http.StatusForbidden, "TokenNotBoundToPod"},
		"the pod's token from another address": {stolen, []string{"web"}, http.StatusForbidden, "SourceAddressMismatch"},
		"the pod's token for another set":      {stolen, []string{"wrong"}, http.StatusForbidden, "PermissionSetMismatch"},
		"the token of a deleted pod":           {dead, []string{"web"}, http.StatusUnauthorized, "Unauthorized"},
	} {
		t.Run(name, func(t *testing.T) {
			status, answer := authorize(t, tc.token, tc.sets...)
			if status != tc.status || answer.Reason != tc.reason || answer.State == protocol.Granted {
				t.Errorf("%d %+v, want %d %s", status, answer, tc.status, tc.reason)
			}
		})
	}
	if got := len(applications(t, p)); got != calls {
		t.Errorf("%d additional applications", got-calls)
	}
}

// The label can be neither forged nor removed, and the webhook replaces a user's
// container with the name of the init container.
func TestTheLabelOfAPodIsNeitherForgedNorRemoved(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, enabled)
	r := n.apply(t, `{apiVersion: v1, kind: Pod, metadata: {name: forged, labels: {stke.io/permission: required}},
 spec: {containers: [{name: app, image: busybox, command: [/bin/sleep, infinity]}]}}`)
	if r.Code == 0 || !strings.Contains(r.Stderr, "only Breakwater adds the label") {
		t.Errorf("a forged label:\n%s", r)
	}
	n.mustApply(t, `{apiVersion: v1, kind: Pod, metadata: {name: web, annotations: {stke.io/permission-set: web}},
 spec: {terminationGracePeriodSeconds: 1, initContainers: [{name: user, image: busybox, command: ["true"]}, {name: init-action-client, image: busybox, command: ["true"]}],
 containers: [{name: app, image: busybox, command: [/bin/sleep, infinity]}]}}`)
	p := n.get(t, "web")
	if c := p.Spec.InitContainers; len(c) != 2 || c[0].Name != protocol.ContainerName || len(c[0].Command) > 0 || c[1].Name != "user" {
		t.Errorf("init containers %+v", p.Spec.InitContainers)
	}
	for _, change := range []string{podmeta.Label + "-", podmeta.Label + "=no"} {
		r, err := n.Run(t.Context(), "label", "pod", "web", "--overwrite", change)
		if err != nil || r.Code == 0 || !strings.Contains(r.Stderr, "cannot be changed") {
			t.Errorf("label %s: %v\n%s", change, err, r)
		}
	}
	r, err := n.Run(t.Context(), "patch", "pod", "web", "--subresource=status", "--type=merge", "-p", `{"metadata":{"labels":{"`+podmeta.Label+`":null}}}`)
	if err != nil || r.Code == 0 || !strings.Contains(r.Stderr, "cannot be changed") {
		t.Errorf("label removed by a write of the status: %v\n%s", err, r)
	}
	n.run(t, "wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
	if len(grantsOf(t, p)) != 1 {
		t.Errorf("grants %v", grantsOf(t, p))
	}
}

// Workloads and namespaces with unknown sets are denied, and so is a pod with
// hostNetwork and a pod-scoped set.
func TestUnknownSetsAndPodScopedSetsWithHostNetworkAreDenied(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, enabled)
	if r := n.apply(t, deployment("unknown", "there-is-none", 1)); r.Code == 0 || !strings.Contains(r.Stderr, "there is no permission set there-is-none") {
		t.Errorf("an unknown set:\n%s", r)
	}
	r, err := n.Run(t.Context(), "annotate", "namespace", n.name, podmeta.PermissionSetAnnotation+"=there-is-none")
	if err != nil || r.Code == 0 {
		t.Errorf("an unknown set on a namespace: %v\n%s", err, r)
	}
	r = n.apply(t, `{apiVersion: v1, kind: Pod, metadata: {name: node, annotations: {stke.io/permission-set: web}},
 spec: {hostNetwork: true, containers: [{name: app, image: busybox, command: [/bin/sleep, infinity]}]}}`)
	if r.Code == 0 || !strings.Contains(r.Stderr, "hostNetwork") {
		t.Errorf("hostNetwork:\n%s", r)
	}
}
