package centre

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/test/oidcissuer"
)

// newFixtureWithIssuer starts a centre that accepts tokens of an issuer.
func newFixtureWithIssuer(t *testing.T, issuer *oidcissuer.Issuer) *fixture {
	t.Helper()
	config := testConfig(t, "sqlite:"+t.TempDir()+"/centre.db")
	access := accessFile + fmt.Sprintf("oidc: [{issuer: %q, allowHTTP: true, clientID: permission-centre, usernameClaim: email}]\n", issuer.URL)
	if err := os.WriteFile(config.AccessFile, []byte(access), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &fixture{t: t}
	w.startReplica(config)
	return w
}

func (w *fixture) adminGet(path string) (int, string) {
	w.t.Helper()
	r := httptest.NewRecorder()
	w.centre.adminHandler().ServeHTTP(r, httptest.NewRequest(http.MethodGet, path, nil))
	return r.Code, r.Body.String()
}

func TestAnUnreachableIssuerStopsOnlyItsTokens(t *testing.T) {
	issuer := oidcissuer.New(t)
	issuer.Down.Store(true)
	w := newFixtureWithIssuer(t, issuer)
	token := issuer.Sign(t, issuer.Claims(nil))
	if status, _ := w.do(adminToken, "GET", "/v1/providers", nil, nil); status != http.StatusOK {
		t.Errorf("a static token: status %d, want 200", status)
	}
	if status, _ := w.do("guessed-token-0123456789", "GET", "/v1/providers", nil, nil); status != http.StatusUnauthorized {
		t.Errorf("an unknown token: status %d, want 401", status)
	}
	if status, body := w.adminGet("/readyz"); status != http.StatusOK {
		t.Errorf("readiness: status %d: %s", status, body)
	}
	status, problem := w.do(token, "GET", "/v1/providers", nil, nil)
	if status != http.StatusServiceUnavailable || !strings.Contains(problem.Message, issuer.URL) {
		t.Errorf("a token of the issuer: status %d %+v, want 503 with the URL of the issuer", status, problem)
	}
	unreachable := `breakwater_permission_centre_oidc_issuer_unreachable{issuer="` + issuer.URL + `"} `
	if _, body := w.adminGet("/metrics"); !strings.Contains(body, unreachable+"1\n") {
		t.Errorf("the metrics lack %s1", unreachable)
	}
	issuer.Down.Store(false)
	eventually(t, 30*time.Second, "the centre accepts tokens of the issuer", func() bool {
		status, _ := w.do(token, "GET", "/v1/providers", nil, nil)
		return status == http.StatusOK
	})
	if _, body := w.adminGet("/metrics"); !strings.Contains(body, unreachable+"0\n") {
		t.Errorf("the metrics lack %s0", unreachable)
	}
}

func TestATokenWithAReservedNameIsAnsweredTheReason(t *testing.T) {
	issuer := oidcissuer.New(t)
	w := newFixtureWithIssuer(t, issuer)
	token := issuer.Sign(t, issuer.Claims(map[string]any{"email": "system:serviceaccount:n:s"}))
	status, problem := w.do(token, "GET", "/v1/providers", nil, nil)
	if status != http.StatusUnauthorized || !strings.Contains(problem.Message, "system:serviceaccount:n:s") || !strings.Contains(problem.Message, "prefix") {
		t.Errorf("status %d %+v, want 401 with the name and the key prefix", status, problem)
	}
}
