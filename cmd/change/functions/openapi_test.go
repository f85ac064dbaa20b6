package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	changefake "github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	"github.com/breakwater-dev/breakwater/functions/rollbackapi"
	"github.com/breakwater-dev/breakwater/internal/drain"
	"github.com/breakwater-dev/breakwater/internal/process"
	"github.com/breakwater-dev/breakwater/internal/servingcert"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// openapiServer is service openapi with the certificate of a folder.
type openapiServer struct{ address, dir string }

func startOpenAPI(t *testing.T) openapiServer {
	t.Helper()
	dir := t.TempDir()
	program, err := newOpenAPI(process.Clients{Kube: fake.NewClientset(), Change: changefake.NewSimpleClientset(), Config: &rest.Config{}}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if program.MaxUnauthenticated == 0 {
		t.Error("strangers may open any number of connections")
	}
	if !program.Endpoint {
		t.Error("a terminating replica would refuse connections")
	}
	// The drain takes some seconds; package process tests it.
	program.Endpoint = false
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- process.Serve(ctx, listener, "openapi", program) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return openapiServer{"localhost:" + port, dir}
}

// renew writes a certificate of a new CA, and returns the certificates that clients trust.
func (s openapiServer) renew(t *testing.T) *x509.CertPool {
	t.Helper()
	ca, _, err := servingcert.Authority{}.Renew(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Issue([]string{"localhost"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"tls.crt": pair.Cert, "tls.key": pair.Key} {
		if err := os.WriteFile(filepath.Join(s.dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.Bundle())
	return roots
}

// get sends a request for a list without a token, on a new connection.
func (s openapiServer) get(t *testing.T, scheme string, roots *x509.CertPool) (int, string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, scheme+"://"+s.address+"/openapi/altershield/suspend/deployment", nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body), nil
}

func TestOpenAPIServesTLSOnlyAndUsesARenewedCertificateWithoutARestart(t *testing.T) {
	s := startOpenAPI(t)
	for range 2 {
		roots := s.renew(t)
		status, body, err := s.get(t, "https", roots)
		if err != nil || status != http.StatusUnauthorized || !strings.Contains(body, `"code":401`) {
			t.Errorf("https: %d %q, %v; want the answer of a route", status, body, err)
		}
		status, body, err = s.get(t, "http", roots)
		if err != nil || status != http.StatusBadRequest || strings.Contains(body, "code") {
			t.Errorf("http: %d %q, %v; want 400 of no route", status, body, err)
		}
		var unknown x509.UnknownAuthorityError
		if _, _, err := s.get(t, "https", x509.NewCertPool()); !errors.As(err, &unknown) {
			t.Errorf("a client that does not trust the CA: %v", err)
		}
	}
}

func TestTheManifestOfOpenAPIMountsTheCertificateThatItServes(t *testing.T) {
	spec := builder.Manifests[appsv1.Deployment](t, "../../../config/core/650-openapi.yaml")[0].Spec.Template.Spec
	c := spec.Containers[0]
	i := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == certDir })
	if i < 0 {
		t.Fatalf("nothing is mounted at %s", certDir)
	}
	j := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == c.VolumeMounts[i].Name })
	if j < 0 || spec.Volumes[j].Secret == nil || spec.Volumes[j].Secret.SecretName != "openapi-certs" {
		t.Error("the mounted volume is not Secret openapi-certs")
	}
	service := builder.Manifests[corev1.Service](t, "../../../config/core/651-openapi-service.yaml")[0]
	if ports := service.Spec.Ports; len(ports) != 1 || ports[0].Port != 443 || ports[0].TargetPort.String() != c.Ports[0].Name ||
		c.Env[0].Name != "PORT" || c.Env[0].Value != "8443" || c.Ports[0].ContainerPort != 8443 {
		t.Errorf("the Service has ports %v, the container %v", ports, c.Ports)
	}
}

func TestOpenAPIIsNotKilledWhileItDrains(t *testing.T) {
	builder.CheckGracePeriod(t, "../../../config/core/650-openapi.yaml", drain.MaxWait+rollbackapi.Timeout+process.FlushTimeout)
}
