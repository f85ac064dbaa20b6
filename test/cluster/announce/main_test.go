// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const podArgs = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web;K8S_POD_UID=uid"

const previous = `{"cniVersion":"1.0.0","ips":[{"address":"10.1.0.5/24"},{"address":"fd00::5/64"}]}`

func TestTheAddressesOfThePreviousPluginAreWrittenToThePod(t *testing.T) {
	c := config{Server: "https://api", Annotation: "example.com/ips", PrevResult: json.RawMessage(previous)}
	url, patch, err := request(c, podArgs)
	const wantURL, wantPatch = "https://api/api/v1/namespaces/shop/pods/web/status", `{"metadata":{"annotations":{"example.com/ips":"10.1.0.5,fd00::5"},"uid":"uid"}}`
	if err != nil || url != wantURL || string(patch) != wantPatch {
		t.Errorf("%s %s, %v", url, patch, err)
	}
	c.PrevResult = json.RawMessage(`{"ips":[]}`)
	if _, _, err := request(c, podArgs); err == nil {
		t.Error("no address is announced")
	}
	c.PrevResult = json.RawMessage(previous)
	if _, _, err := request(c, "K8S_POD_NAME=web"); err == nil {
		t.Error("arguments without a namespace are accepted")
	}
}

// The pod starts without the annotation, because its status has the address later.
func TestTheResultIsPassedOnWhateverTheAPIServerAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		// log is a part of the logged error.
		log string
	}{
		"written": {func(http.ResponseWriter, *http.Request) {}, ""},
		"denied":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, "403"},
		"silent":  {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, context.DeadlineExceeded.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			patched := make(chan string, 1)
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				patched <- string(body)
				tc.handler(w, r)
			}))
			defer server.Close()
			in := configuration(t, server)
			var out, log bytes.Buffer
			began := time.Now()
			if err := run("ADD", podArgs, bytes.NewReader(in), &out, &log); err != nil || out.String() != previous {
				t.Errorf("%q, %v", out.String(), err)
			}
			if took := time.Since(began); took > 5*timeout {
				t.Errorf("the pod waited for %s", took)
			}
			if got := log.String(); !strings.Contains(got, tc.log) || (got == "") != (tc.log == "") {
				t.Errorf("the log is %q, want %q in it", got, tc.log)
			}
			if body := <-patched; !strings.Contains(body, `"10.1.0.5,fd00::5"`) {
				t.Errorf("the patch is %s", body)
			}
			for _, command := range []string{"DEL", "CHECK"} {
				out.Reset()
				if err := run(command, podArgs, bytes.NewReader(in), &out, io.Discard); err != nil || out.Len() > 0 || len(patched) > 0 {
					t.Errorf("%s: %q, %v, %d requests", command, out.String(), err, len(patched))
				}
			}
		})
	}
	if err := run("ADD", podArgs, strings.NewReader(`{}`), io.Discard, io.Discard); err == nil {
		t.Error("it runs without a previous plugin")
	}
}

// configuration returns the configuration of the plugin for a server, with the server's own certificate
// and key as those of the plugin.
func configuration(t *testing.T, server *httptest.Server) []byte {
	t.Helper()
	folder := t.TempDir()
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	pair := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certificate := write("tls.crt", "CERTIFICATE", pair.Certificate[0])
	in, err := json.Marshal(config{
		CNIVersion: "1.0.0", Server: server.URL, CA: certificate, Certificate: certificate, Key: write("tls.key", "PRIVATE KEY", key),
		Annotation: "example.com/ips", PrevResult: json.RawMessage(previous),
	})
	if err != nil {
		t.Fatal(err)
	}
	return in
}
