package centre

import (
	"net/http"
	"testing"
)

func TestAnAddressWithTooManyRejectedRequestsIsAnswered429(t *testing.T) {
	w := newFixture(t, "sqlite:"+t.TempDir()+"/centre.db")
	w.stop()
	config := testConfig(t, "sqlite:"+t.TempDir()+"/other.db")
	config.RejectedRequestsPerMinute = 5
	w.startReplica(config)
	for range 5 {
		if status, _ := w.do("guessed-token-0123456789", "GET", "/v1/applications", nil, nil); status != http.StatusUnauthorized {
			t.Fatalf("unknown token: status %d", status)
		}
	}
	if status, problem := w.do("guessed-token-0123456789", "GET", "/v1/applications", nil, nil); status != http.StatusTooManyRequests || problem.Reason != "TooManyRequests" {
		t.Errorf("request above the limit: %d %+v", status, problem)
	}
}
