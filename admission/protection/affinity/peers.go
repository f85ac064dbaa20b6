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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"knative.dev/pkg/hash"
	certresources "knative.dev/pkg/webhook/certificates/resources"

	"github.com/breakwater-dev/breakwater/internal/webhookpeers"
)

const (
	// dialing is how long a connection may take: a peer is a pod next door.
	dialTimeout = 300 * time.Millisecond
	// connections is how many to a peer are kept: one for each request that is on
	// its way at a time, and no handshake for the next.
	maxIdleConnections = 256
	// misses is how often in a row a peer must not have answered to be left
	// alone, and rest for how long it is.
	maxFailures = 3
	openTime    = 5 * time.Second
)

// Replicas are those behind a Service, as its EndpointSlices tell.
type Replicas struct {
	// Self is the name of this one's pod, and ServerName the one in the
	// certificate of all.
	Self, ServerName string
	// Slices are the EndpointSlices of the Service and of no other.
	Slices discoverylisters.EndpointSliceLister
	// Certificate returns the Secret that all serve with.
	Certificate func() (*corev1.Secret, error)

	client *http.Client
	mu     sync.Mutex
	// breakers are those of the peers that were asked, by their address.
	breakers map[string]*gobreaker.TwoStepCircuitBreaker[struct{}]
}

var _ Peers = (*Replicas)(nil)

// NewReplicas returns the replicas; see the fields.
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

// Home implements Peers.
func (r *Replicas) DecidingPeer(namespace string) Peer {
	ready := r.ready()
	home, _ := hash.ChooseSubset(sets.KeySet(ready), 1, namespace).PopAny()
	if home == "" || home == r.Self {
		return nil
	}
	return peer{client: r.client, address: ready[home], breaker: r.breaker(ready, ready[home])}
}

// ready returns the addresses of the replicas that may be asked, by the names of
// their pods.
func (r *Replicas) ready() map[string]string {
	slices, err := r.Slices.List(labels.Everything())
	if err != nil {
		return nil // a store in memory has no error to give
	}
	return webhookpeers.AddressesByName(webhookpeers.Ready(slices...))
}

// breaker returns that of an address, and forgets those of peers that are gone.
func (r *Replicas) breaker(ready map[string]string, address string) *gobreaker.TwoStepCircuitBreaker[struct{}] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found, ok := r.breakers[address]; ok {
		return found
	}
	there := sets.New[string]()
	for _, a := range ready {
		there.Insert(a)
	}
	for a := range r.breakers {
		if !there.Has(a) {
			delete(r.breakers, a)
		}
	}
	r.breakers[address] = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name: address, Timeout: openTime,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= maxFailures },
		IsSuccessful: func(err error) bool { return err == nil || errors.Is(err, context.Canceled) }, // the API server has gone
	})
	return r.breakers[address]
}

// dial opens a connection to a peer, which must have our certificate. It is read
// each time: it is renewed while we run.
func (r *Replicas) dial(ctx context.Context, network, address string) (net.Conn, error) {
	secret, err := r.Certificate()
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(secret.Data[certresources.CACert]) {
		return nil, fmt.Errorf("Secret %s has no certificate of an authority under %s", secret.Name, certresources.CACert) //nolint:staticcheck // a kind
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
