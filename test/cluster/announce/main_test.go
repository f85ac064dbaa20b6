// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
	denying := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer denying.Close()
	for command, want := range map[string]string{"ADD": previous, "DEL": "", "CHECK": ""} {
		in, err := json.Marshal(config{CNIVersion: "1.0.0", Server: denying.URL, PrevResult: json.RawMessage(previous)})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := run(command, podArgs, bytes.NewReader(in), &out, io.Discard); err != nil || out.String() != want {
			t.Errorf("%s: %q, %v", command, out.String(), err)
		}
	}
	if err := run("ADD", podArgs, strings.NewReader(`{}`), io.Discard, io.Discard); err == nil {
		t.Error("it runs without a previous plugin")
	}
}
