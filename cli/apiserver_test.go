package cli_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/breakwater-dev/breakwater/cli"
)

// apiServer has the body of the answer to a read of each path, with ?continue=TOKEN for a further page of a
// list. What it does not have does not exist.
type apiServer map[string]string

// discovery is the part of an API server that says which kinds it has.
var discovery = apiServer{
	"/api": `{"kind":"APIVersions","versions":["v1"]}`,
	"/apis": `{"kind":"APIGroupList","groups":[
		{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}]},
		{"name":"policy.kruise.io","versions":[{"groupVersion":"policy.kruise.io/v1alpha1","version":"v1alpha1"}]}]}`,
	"/api/v1":       `{"kind":"APIResourceList","groupVersion":"v1","resources":[]}`,
	"/apis/apps/v1": `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[{"name":"deployments","namespaced":true,"kind":"Deployment"}]}`,
	"/apis/policy.kruise.io/v1alpha1": `{"kind":"APIResourceList","groupVersion":"policy.kruise.io/v1alpha1","resources":[
		{"name":"poddeletionflowcontrols","namespaced":false,"kind":"PodDeletionFlowControl"}]}`,
}

// hangs is the body of an answer that does not come within 3 s.
const hangs = "hangs"

// failure is the answer to a request that fails.
func failure(reason metav1.StatusReason, code int) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Status","status":"Failure","reason":%q,"code":%d}`, reason, code)
}

// written is a request that would change an object if it were not a dry run.
type written struct {
	Method, Path, Type string
	Query              url.Values
	Body               map[string]any
}

// serve answers a read.
func (s apiServer) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	path := r.URL.Path
	if next := r.URL.Query().Get("continue"); next != "" {
		path += "?continue=" + next
	}
	answer := cmp.Or(s[path], failure("NotFound", http.StatusNotFound))
	if answer == hangs {
		select {
		case <-r.Context().Done():
		case <-time.After(3 * time.Second):
		}
	}
	var status metav1.Status
	if err := json.Unmarshal([]byte(answer), &status); err == nil && status.Code != 0 {
		w.WriteHeader(int(status.Code))
	}
	_, _ = io.WriteString(w, answer)
}

// run runs the plugin, and returns what it wrote, its output and its exit code.
func (s apiServer) run(t *testing.T, args ...string) (requests []written, output string, code int) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			s.serve(w, r)
			return
		}
		request := written{Method: r.Method, Path: r.URL.Path, Type: r.Header.Get("Content-Type"), Query: r.URL.Query()}
		raw, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(raw, &request.Body)
		}
		if err != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		requests = append(requests, request)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Status","status":"Success"}`)
	}))
	defer server.Close()
	output, code = runAt(t, server.URL, args...)
	return requests, output, code
}

// runAt runs the plugin in namespace shop with an API server.
func runAt(t *testing.T, url string, args ...string) (output string, code int) {
	t.Helper()
	var out bytes.Buffer
	code = cli.Run(t.Context(), "", append(args, "--server", url, "--kubeconfig", os.DevNull, "--cache-dir", t.TempDir(), "-n", "shop"),
		genericiooptions.IOStreams{Out: &out, ErrOut: &out})
	return out.String(), code
}

// with returns the server with one more object.
func (s apiServer) with(path, object string) apiServer {
	all := maps.Clone(s)
	all[path] = object
	return all
}
