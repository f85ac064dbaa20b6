package pipenetwork

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// Body returns a request whose body has content, and its response. If ends is false, the rest of the body never arrives.
func Body(t *testing.T, content string, ends bool) (http.ResponseWriter, *http.Request) {
	t.Helper()
	received, sent := net.Pipe()
	t.Cleanup(func() { _ = received.Close() })
	go func() {
		_, _ = sent.Write([]byte(content))
		if ends {
			_ = sent.Close()
		}
	}()
	return response{httptest.NewRecorder(), received}, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", received)
}

// response sets the deadline of the connection on which the body of its request arrives.
type response struct {
	http.ResponseWriter
	received net.Conn
}

// SetReadDeadline implements the method of http.ResponseController.
func (r response) SetReadDeadline(at time.Time) error { return r.received.SetReadDeadline(at) }
