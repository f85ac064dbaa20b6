package centre

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// The credentials of the providers: http and cmdb have a token, mysql a user and a password.
// unusable is not user:password.
const (
	httpCredential, cmdbCredential = "http-credential-4f1c/+9A==", "cmdb-credential-8d27"
	mysqlUser, mysqlPassword       = "mysql-user-61b3", "mysql-password-c05e"
	unusable                       = "unusable-credential-7e90"
)

// echoes are the answers of the providers, and the states of an application after its grant
// and after its revocation. Each has a permission and a set.
var echoes = []struct {
	answer           string
	granted, revoked api.State
}{
	{"granted", api.Granted, api.Leaked}, {"pending", api.Failed, api.Leaked}, {"denied", api.Denied, api.Revoked},
	{"rejected", api.Failed, api.Leaked}, {"throttled", api.Failed, api.Leaked}, {"failed", api.Failed, api.Leaked},
	{"text", api.Failed, api.Leaked}, {"redirected", api.Failed, api.Leaked}, {"malformed", api.Failed, api.Leaked},
	{"twice", api.Granted, api.Leaked}, {"cmdb", api.Failed, api.Leaked}, {"mysql", api.Failed, api.Revoked}, {"unusable", api.Failed, api.Revoked},
}

var credentials = []string{httpCredential, cmdbCredential, mysqlUser, mysqlPassword, unusable}

// Every provider repeats its credential in all parts of its answers, and the registration
// shows and keeps what an answer contains.
func TestNoCredentialOfAProviderAppearsInAnyOutput(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w, output := newFixture(t, address), &recordedOutput{}
		w.stop()
		// The OpenAPI document does not describe itself.
		w.client, w.skipValidation = &http.Client{Transport: output}, true
		log.SetOutput(output) // net/http writes to it
		t.Cleanup(func() { log.SetOutput(os.Stderr) })
		config := testConfig(t, address)
		for name, credential := range map[string]string{"http": httpCredential, "cmdb": cmdbCredential, "mysql": mysqlUser + ":" + mysqlPassword, "unusable": unusable} {
			if err := os.WriteFile(filepath.Join(config.CredentialsDir, name), []byte(credential+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		w.log = NewLog(output, slog.LevelDebug)
		w.startReplica(config)

		echo := &echoingProvider{received: map[string]bool{}}
		server := httptest.NewServer(echo)
		t.Cleanup(server.Close)
		w.registerEchoing(server.URL, echoingDatabase(t))
		var ids []string
		for n, tc := range echoes {
			a := w.waitForState(w.request(podRequest(n, tc.answer)).ID, tc.granted)
			if tc.answer == "denied" && !strings.Contains(a.Permissions[0].Message, "Bearer …") {
				t.Errorf("message %q does not show what the provider repeated", a.Permissions[0].Message)
			}
			w.mustDo(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil)
			w.waitForState(a.ID, tc.revoked)
			ids = append(ids, a.ID)
		}
		eventually(t, time.Minute, "the centre has read the response without a request", echo.ended.Load)
		w.readEverything(ids)
		w.stop()
		if err := Export(t.Context(), config, output); err != nil {
			t.Fatal(err)
		}

		for _, credential := range []string{"Bearer " + httpCredential, "Bearer " + cmdbCredential} {
			if !echo.hasReceived(credential) {
				t.Errorf("no provider received %q", credential)
			}
		}
		for line := range strings.SplitSeq(output.String(), "\n") {
			for _, credential := range credentials {
				if strings.Contains(line, credential) {
					t.Errorf("%s appears in %s", credential, line)
				}
			}
		}
	})
}

// registerEchoing registers a provider of each type, and a set of one permission for each
// way in which a provider can fail.
func (w *fixture) registerEchoing(url, database string) {
	w.t.Helper()
	shown := "headers['x-echo'] + (body == null ? '' : ' ' + body.error)"
	call := func(method string) api.HTTPCall {
		return api.HTTPCall{Method: method, Path: "/${parameters.answer}/${'kept' in kept ? kept.kept : ''}", Message: shown, Pending: "status == 202",
			Keep: map[string]string{"kept": "headers['x-echo']"}}
	}
	grant, poll, revoke := call("POST"), call("GET"), call("DELETE")
	revoke.Granted = "false"
	mysql := &api.MySQLCall{Databases: []string{"*"}, Users: []string{"*"}, TLS: "false"}
	for _, p := range []api.Provider{
		{Meta: api.Meta{Name: "http"}, Type: api.ProviderHTTP, Endpoint: url, HTTP: &api.HTTPCalls{Grant: grant, Poll: &poll, Revoke: &revoke}},
		{Meta: api.Meta{Name: "cmdb"}, Type: api.ProviderCMDB, Endpoint: url},
		{Meta: api.Meta{Name: "mysql"}, Type: api.ProviderMySQL, Endpoint: database, MySQL: mysql},
		{Meta: api.Meta{Name: "unusable"}, Type: api.ProviderMySQL, Endpoint: database, MySQL: mysql},
	} {
		p.Owner, p.Owners, p.CredentialsRef, p.AllowHTTP, p.CanRevoke, p.TimeoutSeconds = "platform", []string{"*"}, p.Name, true, true, 5
		p.RateLimit, p.Retry = api.RateLimit{PerSecond: 1000, Burst: 10}, api.Retry{MaxCalls: 1, BackoffSeconds: 600, PollSeconds: 0.1, PollTimeoutSeconds: 1}
		w.mustDo(adminToken, "POST", "/v1/providers", p, nil)
	}
	for _, tc := range echoes {
		set := tc.answer
		p := api.Permission{Meta: api.Meta{Name: set, Owner: "team-a"}, Provider: "http", Parameters: map[string]string{"answer": set}}
		switch set {
		case "cmdb":
			p.Provider = set
		case "mysql", "unusable":
			p.Provider, p.Parameters = set, map[string]string{"user": "app", "database": "orders", "privileges": "SELECT", "passwordHash": "*" + strings.Repeat("0", 40)}
		}
		w.mustDo(ownerToken, "POST", "/v1/permissions", p, nil)
		w.mustDo(ownerToken, "POST", "/v1/permissionsets", api.PermissionSet{Meta: api.Meta{Name: set, Owner: "team-a"}, Permissions: []string{set},
			Pods: []api.PodPattern{{Namespace: "*"}}}, nil)
	}
}

// readEverything reads all that the centre serves, changes and deletes objects, and makes
// requests that are rejected.
func (w *fixture) readEverything(ids []string) {
	w.t.Helper()
	for _, token := range []string{adminToken, ownerToken, serverToken, otherToken, podToken, ""} {
		for _, path := range []string{"providers", "permissions", "permissionsets", "applications", "applications?state=Leaked", "audit", "clusters/c1", "openapi.json"} {
			w.do(token, "GET", "/v1/"+path, nil, nil)
		}
		for _, name := range []string{"http", "cmdb", "mysql", "unusable"} {
			w.do(token, "GET", "/v1/providers/"+name, nil, nil)
		}
		for _, id := range ids {
			w.do(token, "GET", "/v1/applications/"+id, nil, nil)
			w.do(token, "GET", "/v1/applications/"+id+"/history", nil, nil)
		}
	}
	for _, name := range []string{"http", "cmdb", "mysql", "unusable"} {
		var p api.Provider
		w.mustDo(adminToken, "GET", "/v1/providers/"+name, nil, &p)
		p.Endpoint = "not an endpoint"
		w.do(adminToken, "PUT", "/v1/providers/"+name, p, nil, "If-Match", `"1"`)
		w.do(adminToken, "DELETE", "/v1/providers/"+name, nil, nil, "If-Match", `"1"`)
		w.mustDo(adminToken, "POST", "/v1/providers/"+name+"/acknowledge", nil, nil)
	}
	for _, id := range ids {
		w.mustDo(adminToken, "GET", "/v1/applications/"+id+"/history", nil, nil)
	}
	w.mustDo(adminToken, "GET", "/v1/audit?limit=500", nil, nil)
	admin := httptest.NewServer(w.centre.adminHandler())
	defer admin.Close()
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, admin.URL+path, nil)
		if err != nil {
			w.t.Fatal(err)
		}
		response, err := w.client.Do(r)
		if err != nil {
			w.t.Fatal(err)
		}
		if _ = response.Body.Close(); response.StatusCode != http.StatusOK {
			w.t.Errorf("%s: %d", path, response.StatusCode)
		}
	}
}

// echoingProvider answers as the path says, and repeats the credential of the request.
type echoingProvider struct {
	mu       sync.Mutex
	received map[string]bool
	// ended: the centre has closed the connection of answer "twice".
	ended atomic.Bool
}

func (p *echoingProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	credential := r.Header.Get("Authorization")
	p.mu.Lock()
	p.received[credential] = true
	p.mu.Unlock()
	header := w.Header()
	header.Set("X-Echo", credential)
	header.Set("WWW-Authenticate", credential)
	header.Set("Retry-After", credential)
	answer := strings.Split(r.URL.Path, "/")[1]
	if r.Method == http.MethodDelete {
		answer = "failed"
	}
	switch answer {
	case "redirected":
		header.Set("Location", "http://other.example/"+credential)
		w.WriteHeader(http.StatusTemporaryRedirect)
		return
	case "malformed":
		p.raw(w, credential+"\r\n\r\n")
		return
	case "twice":
		body := fmt.Sprintf(`{"error": %q}`, credential)
		text := fmt.Sprintf("HTTP/1.1 200 OK\r\nX-Echo: %s\r\nContent-Length: %d\r\n\r\n%s", credential, len(body), body)
		p.raw(w, text+text)
		p.ended.Store(true)
		return
	case "text":
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, "unexpected header Authorization: "+credential)
		return
	}
	status, ok := map[string]int{"granted": 200, "pending": 202, "denied": 422, "rejected": 401, "throttled": 429}[answer]
	if !ok {
		status = http.StatusInternalServerError
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": "header Authorization: " + credential, credential: []string{credential}})
}

func (p *echoingProvider) hasReceived(credential string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.received[credential]
}

// raw writes to the connection, and returns when the other side has closed it.
func (p *echoingProvider) raw(w http.ResponseWriter, text string) {
	connection, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = connection.Close() }()
	_, _ = io.WriteString(connection, text)
	_, _ = io.Copy(io.Discard, connection)
}

// echoingDatabase starts a server that answers each connection with an error of MySQL that
// contains the credential, and returns its address.
func echoingDatabase(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	// 1105 is an unknown error; its packet follows a header with its length and number.
	packet := append([]byte{0xff, 1105 & 0xff, 1105 >> 8}, fmt.Sprintf("#HY000user %s, password %s, or %s", mysqlUser, mysqlPassword, unusable)...)
	packet = append([]byte{byte(len(packet)), 0, 0, 0}, packet...)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = connection.Write(packet)
			_ = connection.Close()
		}
	}()
	return listener.Addr().String()
}

// recordedOutput records what is written to it and, as an http.RoundTripper, all responses.
type recordedOutput struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *recordedOutput) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

func (o *recordedOutput) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// RoundTrip implements http.RoundTripper.
func (o *recordedOutput) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	_, _ = fmt.Fprintf(o, "%s %s: %v %s\n", r.Method, r.URL.Path, response.Header, body)
	return response, err
}
