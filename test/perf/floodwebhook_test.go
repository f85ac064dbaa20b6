//go:build bench

package perf

import (
	"os/exec"
	"regexp"
	"testing"
)

// TestWebhookFlood measures how long reviews take while strangers open connections to a webhook.
func TestWebhookFlood(t *testing.T) {
	where := machine()
	out, err := exec.CommandContext(t.Context(), "go", "test", "-run", "^$", "-bench", "StrangersConnect", "-benchtime", "10x", "../../admission/server").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%s Strangers at nice %s.\n%s", where, niceness(), regexp.MustCompile(`(?m)^Benchmark.*$`).Find(out))
}
