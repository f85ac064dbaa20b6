package centre

import (
	"net/http"
	"testing"
)

// newFixtureWithLimit starts a centre with a limit of five unauthenticated requests of an address.
func newFixtureWithLimit(t *testing.T) *fixture {
	t.Helper()
	w := newFixture(t, "sqlite:"+t.TempDir()+"/centre.db")
	w.stop()
	config := testConfig(t, "sqlite:"+t.TempDir()+"/other.db")
	config.UnauthenticatedRequestsPerMinute = 5
	w.startReplica(config)
	return w
}

func TestAnAddressWithTooManyUnauthenticatedRequestsIsAnswered429(t *testing.T) {
	w := newFixtureWithLimit(t)
	for range 5 {
		if status, _ := w.do("guessed-token-0123456789", "GET", "/v1/applications", nil, nil); status != http.StatusUnauthorized {
			t.Fatalf("unknown token: status %d", status)
		}
	}
	if status, problem := w.do("guessed-token-0123456789", "GET", "/v1/applications", nil, nil); status != http.StatusTooManyRequests || problem.Reason != "TooManyRequests" {
		t.Errorf("request above the limit: %d %+v", status, problem)
	}
}

// An init-action-server sends the requests of all pods of a cluster. Requests for pods that
// may not use a set must not delay the others.
func TestAnAddressIsNotLimitedForRequestsThatItMayNotMake(t *testing.T) {
	w := newFixtureWithLimit(t)
	for i := range 20 {
		if status, _ := w.do(otherToken, "POST", "/v1/applications", podRequest(i, "web"), nil); status != http.StatusForbidden {
			t.Fatalf("request %d: status %d, want 403", i, status)
		}
	}
	if status, problem := w.do(otherToken, "GET", "/v1/applications?cluster=c2", nil, nil); status != http.StatusOK {
		t.Errorf("a request that is allowed: %d %+v", status, problem)
	}
}
