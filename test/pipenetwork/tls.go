package pipenetwork

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// ServeTLS serves https until the test ends, and returns the certificate as PEM. It is valid for 127.0.0.1. A request that is
// not HTTP/2 fails the test.
func (n *Network) ServeTLS(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("protocol %s", r.Proto)
		}
		handler.ServeHTTP(w, r)
	}))
	_ = server.Listener.Close()
	server.Listener, server.EnableHTTP2 = n.Listen(), true
	server.StartTLS()
	t.Cleanup(server.Close)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

// CheckLoss requires that a call fails on a connection that was lost silently, and succeeds 15 seconds later. It sleeps, so
// it needs a fake clock (testing/synctest).
func (n *Network) CheckLoss(t *testing.T, call func() error) {
	t.Helper()
	if err := call(); err != nil {
		t.Fatal(err)
	}
	n.Lose()
	if err := call(); err == nil {
		t.Error("the connection is not lost")
	}
	time.Sleep(15 * time.Second)
	if err := call(); err != nil {
		t.Errorf("15 seconds later: %v", err)
	}
}
