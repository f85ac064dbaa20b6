package main

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/altershield"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

const (
	testPlatform = "breakwater"
	testToken    = "secret"
	testScene    = "breakwater"
)

// fixture is a server under test: a double with a script, and handlers that
// change its calls and callbacks.
type fixture struct {
	script string
	// callbackWait is the maximum time until a callback.
	callbackWait time.Duration
	// lateWait is the maximum time until retrieve confirms a pass, and the time until the last
	// checks; default 100 ms.
	lateWait time.Duration
	// calls wraps the handler of calls, callbacks wraps that of callbacks.
	calls, callbacks func(http.Handler) http.Handler
}

func (f fixture) config() altershield.Config {
	return altershield.Config{
		Platform: testPlatform, Token: testToken, HeaderPrefix: altershield.DefaultHeaderPrefix,
		TenantCode: "t", ChangeSceneKey: testScene, QPS: 1000, Burst: 1000,
	}
}

// serve starts the double, which calls back to the URL, and returns its URL.
func (f fixture) serve(t *testing.T, callbackURL string) string {
	t.Helper()
	d := double.NewDouble(double.Options{
		CallbackURL: callbackURL, Scene: testScene, Tokens: map[string]string{testPlatform: testToken},
	})
	if err := d.LoadScript([]byte(f.script)); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(wrap(f.calls, d.Handler()))
	t.Cleanup(server.Close)
	t.Cleanup(d.Close)
	return server.URL
}

// try runs the suite against the server.
func try(t *testing.T, f fixture) report {
	t.Helper()
	config := f.config()
	callbacks := newEndpoint(config)
	receiver := httptest.NewServer(wrap(f.callbacks, callbacks))
	t.Cleanup(receiver.Close)
	config.BaseURL = f.serve(t, receiver.URL)
	s := newSuite(config, callbacks, f.callbackWait, cmp.Or(f.lateWait, 100*time.Millisecond))
	return s.evaluate(t.Context(), s.try(t.Context()))
}

func wrap(wrapper func(http.Handler) http.Handler, handler http.Handler) http.Handler {
	if wrapper == nil {
		return handler
	}
	return wrapper(handler)
}
