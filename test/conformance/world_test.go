package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/altershield"
	double "github.com/breakwater-dev/breakwater/test/altershield"
)

const (
	testPlatform = "breakwater"
	testToken    = "secret"
	testScene    = "breakwater"
)

// trial is a judge under test: a double with a script, and handlers that change
// its calls and callbacks.
type trial struct {
	script   string
	patience time.Duration
	// calls wraps the handler of the calls, callbacks that of the callbacks.
	calls, callbacks func(http.Handler) http.Handler
}

func (tr trial) config() altershield.Config {
	return altershield.Config{
		Platform: testPlatform, Token: testToken, HeaderPrefix: altershield.DefaultHeaderPrefix,
		TenantCode: "t", ChangeSceneKey: testScene, QPS: 1000, Burst: 1000,
	}
}

// serve starts the double, which calls back to the URL, and returns its URL.
func (tr trial) serve(t *testing.T, callbackURL string) string {
	t.Helper()
	script, err := double.ParseScript([]byte(tr.script))
	if err != nil {
		t.Fatal(err)
	}
	d := double.NewDouble(double.Options{
		CallbackURL: callbackURL, Scene: testScene, Tokens: map[string]string{testPlatform: testToken},
	})
	if err := d.SetScript(script); err != nil {
		t.Fatal(err)
	}
	judge := httptest.NewServer(through(tr.calls, d.Handler()))
	t.Cleanup(judge.Close)
	t.Cleanup(d.Close)
	return judge.URL
}

// try runs the suite against the judge.
func try(t *testing.T, tr trial) report {
	t.Helper()
	config := tr.config()
	callbacks := newEndpoint(config)
	receiver := httptest.NewServer(through(tr.callbacks, callbacks))
	t.Cleanup(receiver.Close)
	config.BaseURL = tr.serve(t, receiver.URL)
	s := newSide(config, callbacks, tr.patience, 100*time.Millisecond)
	return s.evaluate(t.Context(), s.try(t.Context()))
}

func through(between func(http.Handler) http.Handler, to http.Handler) http.Handler {
	if between == nil {
		return to
	}
	return between(to)
}
