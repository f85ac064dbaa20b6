package cli_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// client-go leaves the kinds of the group out.
func TestAKindIsFoundAfterFailedReadsOfItsGroup(t *testing.T) {
	const group = "/apis/apps/v1"
	cluster := discovery.with(group, `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[
		{"name":"deployments","namespaced":true,"kind":"Deployment","shortNames":["deploy"]}]}`)
	failing := discovery.with(group, failure("ServiceUnavailable", http.StatusServiceUnavailable))
	reads := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == group {
			if reads++; reads <= 3 {
				failing.serve(w, r)
				return
			}
		}
		cluster.serve(w, r)
	}))
	defer server.Close()
	if output, _ := runAt(t, server.URL, "retry", "deploy/web"); strings.Contains(output, "the cluster has no kind") {
		t.Errorf("%d reads: %s", reads, output)
	}
}
