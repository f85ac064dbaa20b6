package cli_test

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/breakwater-dev/breakwater/cli"
)

// client-go leaves the kinds of the group out.
func TestAKindIsFoundAfterFailedReadsOfItsGroup(t *testing.T) {
	const group = "/apis/apps/v1"
	cluster := discovery.with(group, `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[
		{"name":"deployments","namespaced":true,"kind":"Deployment","shortNames":["deploy"]}]}`)
	reads := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := cmp.Or(cluster[r.URL.Path], failure("NotFound", http.StatusNotFound))
		if r.URL.Path == group {
			if reads++; reads <= 3 {
				w.WriteHeader(http.StatusServiceUnavailable)
				answer = failure("ServiceUnavailable", http.StatusServiceUnavailable)
			}
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	var out bytes.Buffer
	cli.Run(t.Context(), "", []string{"retry", "deploy/web", "--server", server.URL, "--kubeconfig", os.DevNull, "--cache-dir", t.TempDir()},
		genericiooptions.IOStreams{Out: &out, ErrOut: &out})
	if strings.Contains(out.String(), "the cluster has no kind") {
		t.Errorf("%d reads: %s", reads, out.String())
	}
}
