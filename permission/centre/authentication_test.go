package centre

import (
	"os"
	"path/filepath"
	"testing"
)

// A TokenReview must not wait on a lost connection while other API servers answer.
func TestTheClientOfTokenReviewsDetectsALostConnection(t *testing.T) {
	const ping = "HTTP2_PING_TIMEOUT_SECONDS"
	t.Setenv(ping, "") // restores the variable
	if err := os.Unsetenv(ping); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "access.yaml")
	if err := os.WriteFile(file, []byte("tokenReview:\n  audience: permission-centre\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := newAuthentication(t.Context(), Config{AccessFile: file}) // no cluster
	if err == nil || os.Getenv(ping) != "3" {
		t.Errorf("%v; %s=%s, want 3", err, ping, os.Getenv(ping))
	}
}
