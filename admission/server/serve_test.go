package server

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	certresources "knative.dev/pkg/webhook/certificates/resources"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/drain"
)

// startServer serves a handler until stop is called. It returns the URL and the
// channel with the result of serve.
func startServer(t testing.TB, handler http.HandlerFunc) (url string, stop context.CancelFunc, ended <-chan error) {
	t.Helper()
	return startServerWith(t, func(h http.Handler) http.Handler { return h }, handler)
}

func startServerWith(t testing.TB, check func(http.Handler) http.Handler, handler http.HandlerFunc) (url string, stop context.CancelFunc, ended <-chan error) {
	t.Helper()
	secret, err := certresources.MakeSecret(t.Context(), "certs", v1alpha1.SystemNamespace, "webhook")
	if err != nil {
		t.Fatal(err)
	}
	c, err := tls.X509KeyPair(secret.Data[certresources.ServerCert], secret.Data[certresources.ServerKey])
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		result <- serve(ctx, listener, &tls.Config{Certificates: []tls.Certificate{c}, MinVersion: tls.VersionTLS13}, "test", check, handler)
	}()
	return "https://" + listener.Addr().String(), stop, result
}

// idleConnections is how many idle connections the API server keeps.
const idleConnections = 25

// apiServer returns a client that keeps idle connections like the API server.
func apiServer() *http.Client {
	return &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: idleConnections,
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // a server of the test
	}}
}

// post sends a request, and reports whether the server closes the connection.
func post(client *http.Client, url string) (closed bool, err error) {
	response, err := client.Post(url, "application/json", strings.NewReader("{}")) //nolint:noctx // our own server
	if err != nil {
		return false, err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, response.Body)
	return response.Close, err
}

// A rolling update of the webhook must not fail a single request: the API server
// would deny it, or admit it unchecked.
func TestATerminatingProcessAnswersAllRequestsAndClosesConnections(t *testing.T) {
	t.Parallel()
	url, stop, ended := startServer(t, func(http.ResponseWriter, *http.Request) {})
	client := apiServer()
	if closed, err := post(client, url); err != nil || closed {
		t.Fatalf("before termination: closed %t, %v", closed, err)
	}
	var requests atomic.Int64
	var clients sync.WaitGroup
	for range idleConnections {
		clients.Go(func() {
			// The first is that of an open connection, the second that of a new one.
			for closed := 0; closed < 2 && !t.Failed(); {
				c, err := post(client, url)
				if err != nil {
					t.Errorf("request %d: %v", requests.Load(), err)
				}
				if c {
					closed++
				}
				if requests.Add(1) == 1000 {
					stop()
				}
			}
		})
	}
	clients.Wait()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(4 * drain.QuietPeriod):
		t.Error("the server did not end")
	}
}
