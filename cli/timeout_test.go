package cli_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/breakwater-dev/breakwater/cli"
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
	var out bytes.Buffer
	code := cli.Run(t.Context(), "", []string{"status", "deployment/web", "--timeout", "2s", "--server", server.URL, "--kubeconfig", os.DevNull,
		"--cache-dir", t.TempDir()}, genericiooptions.IOStreams{Out: &out, ErrOut: &out})
	if code != 1 || strings.Contains(out.String(), "reading again") || !strings.Contains(out.String(), "x509") {
		t.Errorf("code %d: %s", code, out.String())
	}
}
