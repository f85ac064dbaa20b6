package affinity

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"knative.dev/pkg/hash"
	certresources "knative.dev/pkg/webhook/certificates/resources"

	"github.com/breakwater-dev/breakwater/internal/webhookpeers"
)

const (
	// dialTimeout is short, because peers are in the same cluster.
	dialTimeout = 300 * time.Millisecond
	// maxIdleConnections is the number of connections that are kept per peer, to
	// avoid a TLS handshake per request.
	maxIdleConnections = 256
	// maxFailures is the number of consecutive failures after which a peer is not
	// called for openTime.
	maxFailures = 3
	openTime    = 5 * time.Second
)

// Replicas are the replicas of the webhook, from its EndpointSlices.
type Replicas struct {
	// Self is the name of this pod, ServerName the DNS name in the certificate.
	Self, ServerName string
	// Slices lists the EndpointSlices of the Service only.
	Slices discoverylisters.EndpointSliceLister
	// Certificate returns the Secret with the serving certificate.
	Certificate func() (*corev1.Secret, error)

	client *http.Client
	mu     sync.Mutex
	// breakers are the circuit breakers of the peers, by address.
	breakers map[string]*gobreaker.TwoStepCircuitBreaker[struct{}]
}

var _ Peers = (*Replicas)(nil)

// NewReplicas returns Replicas with these fields.
func NewReplicas(self, serverName string, slices discoverylisters.EndpointSliceLister, certificate func() (*corev1.Secret, error)) *Replicas {
	r := &Replicas{
		Self: self, ServerName: serverName, Slices: slices, Certificate: certificate,
		breakers: map[string]*gobreaker.TwoStepCircuitBreaker[struct{}]{},
	}
	r.client = &http.Client{Transport: &http.Transport{
		DialTLSContext: r.dial, MaxIdleConnsPerHost: maxIdleConnections, IdleConnTimeout: time.Minute, DisableCompression: true,
	}}
	return r
}

// DecidingPeer implements Peers.
func (r *Replicas) DecidingPeer(namespace string) Peer {
	ready := webhookpeers.ReadyAddresses(r.Slices)
	deciding, _ := hash.ChooseSubset(sets.KeySet(ready), 1, namespace).PopAny()
	if deciding == "" || deciding == r.Self {
		return nil
	}
	return peer{client: r.client, address: ready[deciding], breaker: r.breaker(ready, ready[deciding])}
}

// breaker returns the breaker of an address and deletes those of removed peers.
func (r *Replicas) breaker(ready map[string]string, address string) *gobreaker.TwoStepCircuitBreaker[struct{}] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found, ok := r.breakers[address]; ok {
		return found
	}
	addresses := sets.New[string]()
	for _, a := range ready {
		addresses.Insert(a)
	}
	for a := range r.breakers {
		if !addresses.Has(a) {
			delete(r.breakers, a)
		}
	}
	r.breakers[address] = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name: address, Timeout: openTime,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= maxFailures },
		IsSuccessful: func(err error) bool { return err == nil || errors.Is(err, context.Canceled) }, // the API server disconnected
	})
	return r.breakers[address]
}

// dial connects to a peer and verifies its certificate. The CA is read each time,
// because it is renewed while this process runs.
func (r *Replicas) dial(ctx context.Context, network, address string) (net.Conn, error) {
	secret, err := r.Certificate()
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(secret.Data[certresources.CACert]) {
		return nil, fmt.Errorf("Secret %s has no CA certificate under key %s", secret.Name, certresources.CACert) //nolint:staticcheck // a kind
	}
	d := tls.Dialer{
		NetDialer: &net.Dialer{Timeout: dialTimeout},
		Config:    &tls.Config{RootCAs: roots, ServerName: r.ServerName, MinVersion: tls.VersionTLS12},
	}
	return d.DialContext(ctx, network, address)
}

// peer is another replica.
type peer struct {
	client  *http.Client
	address string
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
}

// Do implements Peer.
func (p peer) Do(req *http.Request) (*http.Response, error) {
	req.URL.Scheme, req.URL.Host = "https", p.address
	done, err := p.breaker.Allow()
	if err != nil {
		return nil, err
	}
	res, err := p.client.Do(req)
	done(err)
	return res, err
}
