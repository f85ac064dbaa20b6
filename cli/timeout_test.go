package cli_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestStatusEndsAtItsTimeoutIfTheAPIServerHangs(t *testing.T) {
	_, output, code := discovery.with(deploymentPath+"/web", hangs).run(t, "status", "deployment/web", "--timeout", "100ms")
	if code != 2 || !strings.Contains(output, "context deadline exceeded") {
		t.Errorf("code %d: %s", code, output)
	}
}

func TestStatusEndsAtOnceIfTheCertificateOfTheAPIServerIsNotTrusted(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	output, code := runAt(t, server.URL, "status", "deployment/web", "--timeout", "2s")
	if code != 1 || strings.Contains(output, "reading again") || !strings.Contains(output, "x509") {
		t.Errorf("code %d: %s", code, output)
	}
}
