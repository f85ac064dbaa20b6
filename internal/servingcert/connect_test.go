package servingcert

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

type server struct {
	*httptest.Server
	cert, key string
}

// newServer starts a server whose certificate and key are the files that method use
// writes.
func newServer(t *testing.T) *server {
	t.Helper()
	dir := t.TempDir()
	s := &server{cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key")}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "token: "+r.Header.Get("Authorization"))
	}))
	s.Listener = tls.NewListener(s.Listener, ServerConfig(s.cert, s.key))
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func (s *server) use(t *testing.T, pair KeyPair) {
	t.Helper()
	for file, content := range map[string][]byte{s.cert: pair.Cert, s.key: pair.Key} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// get sends a request with a token on a new connection.
func (s *server) get(t *testing.T, b *Bundle, scheme string) (int, string, error) {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	b.Trust(transport)
	url := scheme + "://" + strings.Replace(s.Listener.Addr().String(), "127.0.0.1", "localhost", 1)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "secret")
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

func bundleOf(a Authority) map[string]string { return map[string]string{BundleKey: string(a.Bundle())} }

func TestAClientSendsItsTokenOnlyToAServerThatItTrusts(t *testing.T) {
	s, b := newServer(t), &Bundle{}
	a, _ := renew(t, Authority{}, time.Now())
	s.use(t, issue(t, a, time.Now()))
	if _, _, err := s.get(t, b, "https"); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("without a bundle: %v", err)
	}
	b.Missing = errors.New("the ConfigMap is empty")
	if _, _, err := s.get(t, b, "https"); !errors.Is(err, b.Missing) || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("the message does not say what is missing: %v", err)
	}
	b.Update(bundleOf(a))
	if _, body, err := s.get(t, b, "https"); err != nil || body != "token: secret" {
		t.Errorf("with the bundle: %q, %v", body, err)
	}
}

func TestABundleOfAnotherCAIsNotReportedAsMissing(t *testing.T) {
	s, b := newServer(t), &Bundle{Missing: errors.New("the ConfigMap is empty")}
	a, _ := renew(t, Authority{}, time.Now())
	other, _ := renew(t, Authority{}, time.Now())
	s.use(t, issue(t, a, time.Now()))
	b.Update(bundleOf(other))
	if _, _, err := s.get(t, b, "https"); err == nil || errors.Is(err, b.Missing) {
		t.Errorf("%v", err)
	}
}

func TestAServerWithACertificateRefusesPlainHTTP(t *testing.T) {
	s := newServer(t)
	a, _ := renew(t, Authority{}, time.Now())
	s.use(t, issue(t, a, time.Now()))
	if status, body, err := s.get(t, &Bundle{}, "http"); err != nil || status != http.StatusBadRequest || strings.Contains(body, "token") {
		t.Errorf("status %d, %q, %v", status, body, err)
	}
}

func TestANewCertificateAndANewBundleAreUsedWithoutARestart(t *testing.T) {
	s, b := newServer(t), &Bundle{}
	first, _ := renew(t, Authority{}, time.Now())
	second, _ := renew(t, Authority{}, time.Now())
	b.Update(bundleOf(first))
	s.use(t, issue(t, first, time.Now()))
	if _, _, err := s.get(t, b, "https"); err != nil {
		t.Fatal(err)
	}
	s.use(t, issue(t, second, time.Now()))
	if _, _, err := s.get(t, b, "https"); err == nil {
		t.Error("a certificate of another authority is trusted")
	}
	b.Update(bundleOf(second))
	if _, _, err := s.get(t, b, "https"); err != nil {
		t.Error(err)
	}
}

func TestAConfigMapWithoutCertificatesChangesNothing(t *testing.T) {
	a, _ := renew(t, Authority{}, time.Now())
	b := &Bundle{}
	b.Update(bundleOf(a))
	for _, data := range []map[string]string{nil, {}, {BundleKey: "none"}} {
		b.Update(data)
		if b.Get() != string(a.Bundle()) {
			t.Errorf("%v replaced the bundle", data)
		}
	}
}
