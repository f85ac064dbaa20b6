package setup

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/altershield"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

const token = "a-token-of-the-platform"

// callback is a callback of the server.
type callback struct {
	header http.Header
	body   []byte
}

// fixture is an empty server and a receiver of its callbacks.
type fixture struct {
	double    *double.Double
	admin     *Admin
	desired   Desired
	config    altershield.Config
	callbacks chan callback
}

// newFixture returns a fixture. before is called before each call to the server.
func newFixture(t *testing.T, options double.Options, before func(*http.Request)) *fixture {
	t.Helper()
	f := &fixture{callbacks: make(chan callback, 10)}
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f.callbacks <- callback{r.Header, body}
	}))
	t.Cleanup(receiver.Close)
	options.Empty = true
	f.double = double.NewDouble(options)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before != nil {
			before(r)
		}
		f.double.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(f.double.Close)
	f.admin = NewAdmin(server.URL + "/")
	f.desired = Desired{
		Platform: "breakwater", Owner: "breakwater", Tenant: "default", TargetType: "pod",
		Scenes: []Scene{
			{Key: "breakwater.one.rollout", Name: "Rollouts of cluster one", Generation: Generation2, Callback: receiver.URL, Post: 30 * time.Second},
			{Key: "breakwater.one.release", Name: "Release checks of cluster one", Generation: Generation1},
		},
	}
	f.config = altershield.Config{
		BaseURL: server.URL, Platform: "breakwater", Token: token, TenantCode: "default", ClusterName: "one", ChangeSceneKey: "breakwater.one.rollout",
	}
	return f
}

func (f *fixture) plan(t *testing.T) Plan {
	t.Helper()
	observed, err := f.admin.Observe(t.Context(), f.desired)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Decide(f.desired, observed)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (f *fixture) apply(t *testing.T) {
	t.Helper()
	if err := f.admin.Apply(t.Context(), f.desired, f.plan(t), token); err != nil {
		t.Fatal(err)
	}
}

// prove makes the proof and fails the test if that is not possible.
func (f *fixture) prove(t *testing.T) bool {
	t.Helper()
	checked, err := Prove(t.Context(), f.config, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	return checked
}

func TestAnEmptyServerIsSetUpUntilItJudgesABatch(t *testing.T) {
	f := newFixture(t, double.Options{}, nil)
	f.apply(t)
	for range 2 {
		if !f.prove(t) {
			t.Error("the server does not check signatures")
		}
	}
	if orders := f.double.Orders(); len(orders) != 1 || orders[0].State != "CANCEL" {
		t.Errorf("orders of two proofs are %+v", orders)
	}
	client := altershield.New(f.config)
	t.Cleanup(client.Close)
	if _, err := client.OpenOrder(t.Context(), altershield.OpenOrder{OrderID: "order"}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.StartBatch(t.Context(), altershield.StartBatch{OrderID: "order", Info: altershield.BatchInfo{Pods: []string{"a"}}}); err != nil {
		t.Fatal(err)
	}
	var got callback
	select {
	case got = <-f.callbacks:
	case <-time.After(10 * time.Second):
		t.Fatal("no callback arrived")
	}
	if err := altershield.Verify(got.header, altershield.DefaultHeaderPrefix, "breakwater", got.body, token, time.Now(), 0); err != nil {
		t.Errorf("the callback %s: %v", got.body, err)
	}
	verdict, err := altershield.ParseCallback(got.body)
	if err != nil || verdict.Verdict != "pass" || verdict.BizExecOrderID != "order" {
		t.Errorf("the callback is %+v, %v", verdict, err)
	}
}

func TestASetupIsCompleteAfterOneRun(t *testing.T) {
	f := newFixture(t, double.Options{}, nil)
	f.apply(t)
	if p := f.plan(t); !p.Done() {
		t.Errorf("the second plan is %+v", p)
	}
	scene, err := f.admin.scene(t.Context(), "breakwater.one.rollout")
	if err != nil {
		t.Fatal(err)
	}
	for i := range scene.Steps {
		scene.Steps[i].ID, scene.Steps[i].Name = "", ""
	}
	want := []SceneStep{{Key: "breakwater.one.rollout", Pre: DefaultCheckTimeout, Post: 30 * time.Second}, {Key: "breakwater.one.rollout._batch", Pre: DefaultCheckTimeout, Post: 30 * time.Second}}
	if diff := cmp.Diff(want, scene.Steps); diff != "" {
		t.Error("steps: (-want +got)", diff)
	}
}

func TestASetupContinuesAfterAFailure(t *testing.T) {
	f := newFixture(t, double.Options{}, nil)
	whole := f.plan(t)
	part := whole
	part.Types, part.Create, part.Configure = part.Types[:1], part.Create[:1], nil
	if err := f.admin.Apply(t.Context(), f.desired, part, token); err != nil {
		t.Fatal(err)
	}
	rest := f.plan(t)
	if diff := cmp.Diff(Plan{Types: whole.Types[1:], Create: whole.Create[1:], Configure: whole.Configure}, rest); diff != "" {
		t.Fatal("(-want +got)", diff)
	}
	f.apply(t)
	f.prove(t)
}

func TestTheProofWaitsUntilTheServerKnowsTheScene(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	calls := 0
	f := newFixture(t, double.Options{Clock: clock, SceneCache: 10 * time.Second}, func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/submitChangeExecOrder") {
			calls++
			clock.Step(4 * time.Second)
		}
	})
	f.apply(t)
	f.prove(t)
	if calls != 3 {
		t.Errorf("%d calls", calls)
	}
}

func TestAWrongTokenIsNoProof(t *testing.T) {
	f := newFixture(t, double.Options{}, nil)
	f.apply(t)
	f.config.Token = "another"
	if _, err := Prove(t.Context(), f.config, time.Millisecond); !altershield.IsSignature(err) {
		t.Errorf("error is %v", err)
	}
}

func TestAServerThatSkipsSignaturesIsNamed(t *testing.T) {
	f := newFixture(t, double.Options{Signature: double.Skip}, nil)
	f.apply(t)
	if f.prove(t) {
		t.Error("the server checks signatures")
	}
}

// A proxy or the server may answer with the request, in another form. The answer is cut and quoted.
func TestAnErrorOfTheAdminAPIHasNoToken(t *testing.T) {
	same := strings.NewReplacer()
	for name, tc := range map[string]struct {
		status int
		answer string // with %s for the request
		escape *strings.Replacer
	}{
		"a proxy":                            {http.StatusBadRequest, "%s", same},
		"a proxy that escapes":               {http.StatusBadRequest, "%s", strings.NewReplacer("/", `\/`, "=", `\u003D`, "🔑", `\ud83d\uDD11`)},
		"a message":                          {http.StatusOK, `{"success":false,"resultCode":"101","msg":"%s"}`, strings.NewReplacer(`\`, `\\`, `"`, `\"`)},
		"a message that escapes":             {http.StatusOK, `{"success":false,"resultCode":"101","msg":"%s"}`, strings.NewReplacer(`\`, `\\`, `"`, `\"`, "/", `\/`, "=", `\u003d`)},
		"a message that escapes the request": {http.StatusOK, `{"success":false,"resultCode":"101","msg":"%s"}`, strings.NewReplacer(`\`, `\\`, `"`, `\"`, "/", `\\/`, "=", `\\u003d`)},
		"an answer that cannot be parsed":    {http.StatusOK, "%s", same},
	} {
		t.Run(name, func(t *testing.T) {
			page := ""
			echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				request, _ := io.ReadAll(r.Body)
				w.WriteHeader(tc.status)
				_, _ = fmt.Fprintf(w, tc.answer, page+tc.escape.Replace(string(request)))
			}))
			t.Cleanup(echo.Close)
			for _, token := range []string{"my-secret", `my-"secret"`, "my-<secret>", "my-/secret=", `my-\secret\`, "my-🔑secret"} {
				for length := 0; length < 128; length += 4 {
					page = strings.Repeat("x", length)
					err := NewAdmin(echo.URL).createPlatform(t.Context(), "breakwater", "breakwater", token)
					if err == nil || strings.Contains(err.Error(), "my-") || length == 0 && !strings.Contains(err.Error(), altershield.Redacted) {
						t.Fatalf("token %s after %d bytes: error is %v", token, length, err)
					}
				}
			}
		})
	}
}

func TestATokenThatTheAnswerContainsChangesNoResult(t *testing.T) {
	const failed = `{"success":true,"resultCode":"101","msg":"m"}`
	for name, tc := range map[string]struct {
		token, answer string
		created       bool
	}{
		"a success":                 {"true", `{"success":true,"resultCode":"000"}`, true},
		"a success with its field":  {"success", `{"success":true,"resultCode":"000"}`, true},
		"a rejection":               {"101", failed, false},
		"a rejection with its code": {"resultCode", failed, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, tc.answer) }))
			t.Cleanup(server.Close)
			err := NewAdmin(server.URL).createPlatform(t.Context(), "breakwater", "breakwater", tc.token)
			if (err == nil) != tc.created {
				t.Errorf("created is %t, error is %v", tc.created, err)
			}
		})
	}
}

func TestACallOfTheAdminAPIFollowsNoRedirect(t *testing.T) {
	var bodies []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(raw))
	}))
	t.Cleanup(elsewhere.Close)
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	t.Cleanup(server.Close)
	err := NewAdmin(server.URL).createPlatform(t.Context(), "breakwater", "breakwater", token)
	if err == nil || len(bodies) > 0 {
		t.Errorf("error is %v, bodies elsewhere are %q", err, bodies)
	}
}

func TestTheProofOfTheCallback(t *testing.T) {
	accepts := func(token string) func(*http.Request, []byte) int {
		return func(r *http.Request, body []byte) int {
			if altershield.Verify(r.Header, "X-OpsCloud-", "breakwater", body, token, time.Now(), 0) != nil {
				return http.StatusUnauthorized
			}
			if c, err := altershield.ParseCallback(body); err != nil || c.Verdict != "pass" {
				return http.StatusBadRequest
			}
			return http.StatusOK
		}
	}
	for name, tc := range map[string]struct {
		// answers are the answers of function callback; the last one repeats.
		answers []func(*http.Request, []byte) int
		err     string
	}{
		"it accepts the token":                    {[]func(*http.Request, []byte) int{accepts(token)}, ""},
		"it reads its configuration late":         {[]func(*http.Request, []byte) int{accepts("old"), accepts("old"), accepts(token)}, ""},
		"it has no configuration yet":             {[]func(*http.Request, []byte) int{func(*http.Request, []byte) int { return 503 }, accepts(token)}, ""},
		"the connection is refused":               {nil, "refused"},
		"it has another token until the deadline": {[]func(*http.Request, []byte) int{accepts("old")}, ErrRejected.Error()},
		"another program answers":                 {[]func(*http.Request, []byte) int{func(*http.Request, []byte) int { return 404 }}, "status 404"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			calls := 0
			receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				w.WriteHeader(tc.answers[min(calls, len(tc.answers)-1)](r, body))
				if calls++; calls > 5 {
					cancel() // as the deadline does
				}
			}))
			defer receiver.Close()
			if tc.answers == nil {
				receiver.Close()
			}
			config := altershield.Config{HeaderPrefix: "X-OpsCloud-", Platform: "breakwater", Token: token, ClusterName: "one", ChangeSceneKey: "scene"}
			err := ProveCallback(ctx, config, receiver.URL, time.Millisecond)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error is %v, want %q", err, tc.err)
			}
		})
	}
}
