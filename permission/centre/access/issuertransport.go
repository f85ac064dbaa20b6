package access

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/internal/httptransport"
)

const (
	// issuerTimeout bounds a request to an issuer.
	issuerTimeout = 10 * time.Second
	// issuerPause is how long no request is sent to an issuer after one failed.
	issuerPause = time.Second
	// maxIssuerResponse is the size limit of a response in bytes.
	maxIssuerResponse = 1 << 20
)

// errNoTLS is returned for a redirect or a jwks_uri without TLS.
var errNoTLS = errors.New("the URL has no TLS; use https, or set allowHTTP: true if the network is trusted")

// issuerTransport sends requests to an issuer, and records whether they fail. A status
// other than 200 is a failure.
type issuerTransport struct {
	base      http.RoundTripper
	allowHTTP bool
	clock     clock.PassiveClock

	mu     sync.Mutex
	err    error
	failed time.Time
}

func newIssuerTransport(allowHTTP bool, c clock.PassiveClock) *issuerTransport {
	return &issuerTransport{base: httptransport.New(), allowHTTP: allowHTTP, clock: c}
}

// failure returns the error of the last failed request or check. Only a check that succeeds
// clears it.
func (t *issuerTransport) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// record records the result of a check of the issuer.
func (t *issuerTransport) record(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err, t.failed = err, t.clock.Now()
}

// RoundTrip implements http.RoundTripper.
func (t *issuerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.mu.Lock()
	err, failed := t.err, t.failed
	t.mu.Unlock()
	if err != nil && t.clock.Since(failed) < issuerPause {
		// A token without a known key causes a request to the issuer, and anyone can
		// send such a token.
		return nil, err
	}
	response, err := t.send(r)
	if err != nil {
		t.record(err)
	}
	return response, err
}

func (t *issuerTransport) send(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !t.allowHTTP {
		return nil, errNoTLS
	}
	response, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = http.MaxBytesReader(nil, response.Body, maxIssuerResponse)
	if response.StatusCode >= 300 && response.StatusCode < 400 && response.Header.Get("Location") != "" {
		return response, nil // http.Client follows it
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("the issuer answered %d", response.StatusCode)
	}
	return response, nil
}
