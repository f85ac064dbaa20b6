package centre

import (
	"net/http"
	"testing"
)

func TestWhoIsRefusedTooOftenIsNotHeardByTheCentre(t *testing.T) {
	w := start(t, "sqlite:"+t.TempDir()+"/centre.db")
	w.stop()
	config := setting(t, "sqlite:"+t.TempDir()+"/other.db")
	config.RefusalsPerMinute = 5
	w.replica(config)
	for range 5 {
		if status, _ := w.do("guessed-token-0123456789", "GET", "/v1/applications", nil, nil); status != http.StatusUnauthorized {
			t.Fatalf("a token that nobody knows: %d", status)
		}
	}
	if status, problem := w.do("guessed-token-0123456789", "GET", "/v1/applications", nil, nil); status != http.StatusTooManyRequests || problem.Reason != "TooManyRequests" {
		t.Errorf("one more: %d %+v", status, problem)
	}
}
