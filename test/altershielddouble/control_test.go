package altershielddouble

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
)

func (f *fixture) callControl(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, f.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(raw)
}

func TestTheDoubleIsScriptedOverHTTP(t *testing.T) {
	f := newFixture(t, nil)
	for _, tc := range []struct {
		method, path, body string
		status             int
		contains           string
	}{
		{"GET", "/double/health", "", 200, "ok"},
		{"PUT", "/double/script", `{"default":{"verdict":"fail"}}`, 204, ""},
		{"GET", "/double/script", "", 200, `"verdict":"fail"`},
		{"PUT", "/double/script", `{"defaults":{}}`, 400, "unknown field"},
		{"PUT", "/double/script", `{"default":{"as":"xml"}}`, 400, "as"},
		{"GET", "/double/log", "", 200, `{"calls":[],"callbacks":[],"dropped":0}`},
		{"GET", "/double/nodes", "", 200, `[]`},
		{"GET", "/double/orders", "", 200, `[]`},
		{"POST", "/double/script", "", 405, ""},
		{"GET", "/openapi/v1/exe/" + actionRetrieve, "", 405, ""},
		{"GET", "/other", "", 404, ""},
	} {
		status, body := f.callControl(t, tc.method, tc.path, tc.body)
		if status != tc.status || !strings.Contains(body, tc.contains) {
			t.Errorf("%s %s: %d %s", tc.method, tc.path, status, body)
		}
	}
}

func TestTheLogHasCallsAndCallbacks(t *testing.T) {
	f := newFixture(t, nil)
	node := f.started(t)
	f.idle(t)
	f.call(t, actionOpenOrder, orderBody(map[string]any{"bizExecOrderId": "p"}))
	_, raw := f.callControl(t, "GET", "/double/log?order=o", "")
	var log Log
	if err := json.Unmarshal([]byte(raw), &log); err != nil {
		t.Fatal(err)
	}
	if len(log.Calls) != 2 || len(log.Callbacks) != 1 {
		t.Fatalf("%s", raw)
	}
	call, callback := log.Calls[1], log.Callbacks[0]
	if call.Action != actionStartBatch || call.Node != node || call.Order != "o" || call.Status != 200 || call.Code != "000" || call.Time.IsZero() || len(call.Body) == 0 {
		t.Errorf("%+v", call)
	}
	if callback.Node != node || callback.Stage != Pre || callback.Verdict != "pass" || callback.As != "json" || callback.Status != 200 ||
		callback.Seq <= call.Seq || callback.Sent.IsZero() || !strings.Contains(callback.Body, node) {
		t.Errorf("%+v", callback)
	}
	if strings.Contains(raw, f.token+`"`) {
		t.Error("the token is in the log")
	}
}

func TestAFailedCallbackIsLoggedAndNotSentAgain(t *testing.T) {
	f := newFixture(t, nil)
	f.setScript(t, `{"callbackUrl":"http://127.0.0.1:1/"}`)
	f.started(t)
	f.idle(t)
	if got := f.Log().Callbacks; len(got) != 1 || got[0].Error == "" || got[0].Status != 0 {
		t.Errorf("%+v", got)
	}
}

func TestDeleteRemovesAllStateAndStopsRunningChecks(t *testing.T) {
	f := newFixture(t, nil)
	f.setScript(t, `{"default":{"delay":"1h"}}`)
	first := f.started(t)
	if status, _ := f.callControl(t, "DELETE", "/double", ""); status != 204 {
		t.Errorf("status %d", status)
	}
	f.idle(t)
	if log := f.Log(); len(log.Calls)+len(log.Callbacks)+len(f.Nodes())+len(f.Orders()) != 0 {
		t.Errorf("%+v", log)
	}
	second := f.started(t)
	f.idle(t) // the script with the delay was deleted too
	if first == second || len(f.bodies(t)) != 1 {
		t.Errorf("%s, %s", first, second)
	}
}

func TestTheLogIsBounded(t *testing.T) {
	dropped := 0
	entries := trim(&dropped, make([]CallEntry, maxEntries+3))
	if len(entries) != maxEntries || dropped != 3 {
		t.Errorf("%d entries, %d dropped", len(entries), dropped)
	}
}

// TestTheExamplesOfTheDocumentationAreScripts parses each indented JSON object
// in the package doc as a script or as a default behavior.
func TestTheExamplesOfTheDocumentationAreScripts(t *testing.T) {
	raw, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(raw)[strings.Index(string(raw), "# Scripts"):]
	blocks := regexp.MustCompile(`(?m)(^//\t.*\n)+`).FindAllString(doc, -1)
	if len(blocks) < 6 {
		t.Fatalf("%d blocks", len(blocks))
	}
	for _, block := range blocks {
		d := json.NewDecoder(strings.NewReader(strings.ReplaceAll(block, "//\t", "")))
		for d.More() {
			var example json.RawMessage
			if err := d.Decode(&example); err != nil {
				t.Fatalf("%s: %v", block, err)
			}
			_, asScript := ParseScript(example)
			_, asDefault := ParseScript([]byte(`{"default":` + string(example) + `}`))
			if asScript != nil && asDefault != nil {
				t.Errorf("%s: %v", example, asScript)
			}
		}
	}
}
