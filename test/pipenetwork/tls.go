package pipenetwork

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
)

// ServeTLS serves https with HTTP/2 until the test ends, and returns the certificate as PEM. It is valid for 127.0.0.1.
func (n *Network) ServeTLS(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	_ = server.Listener.Close()
	server.Listener, server.EnableHTTP2 = n.Listen(), true
	server.StartTLS()
	t.Cleanup(server.Close)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}
