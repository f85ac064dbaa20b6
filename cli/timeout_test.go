package cli_test

import (
	"strings"
	"testing"
)

func TestStatusEndsAtItsTimeoutIfTheAPIServerHangs(t *testing.T) {
	_, output, code := discovery.with(deploymentPath+"/web", hangs).run(t, "status", "deployment/web", "--timeout", "100ms")
	if code != 2 || !strings.Contains(output, "context deadline exceeded") {
		t.Errorf("code %d: %s", code, output)
	}
}
