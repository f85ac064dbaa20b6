package cli_test

import (
	"strings"
	"testing"
)

func TestGetOfAWorkloadInAllNamespacesIsAnError(t *testing.T) {
	_, output, code := discovery.run(t, "get", "deployment/web", "-A")
	if code != 1 || !strings.Contains(output, "-A lists the releases of all namespaces: leave it or deployment/web out") {
		t.Errorf("code %d: %s", code, output)
	}
}
