package selfcheck

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strconv"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	discoveryclient "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

const (
	// patience is how long a replica may take to shake hands.
	patience = 2 * time.Second
	// webhookPort is the name of the port of both Services.
	webhookPort = "https-webhook"
)

// ready returns the addresses that the API server may ask.
func ready(ctx context.Context, client discoveryclient.EndpointSlicesGetter, service string) ([]string, error) {
	slices, err := client.EndpointSlices(v1alpha1.SystemNamespace).List(ctx, metav1.ListOptions{
		LabelSelector: discoveryv1.LabelServiceName + "=" + service,
	})
	if err != nil {
		return nil, fmt.Errorf("list the endpoints of Service %s: %w", service, err)
	}
	var all []string
	for _, s := range slices.Items {
		for _, p := range s.Ports {
			if ptr.Deref(p.Name, "") != webhookPort || p.Port == nil {
				continue
			}
			for _, e := range s.Endpoints {
				if ptr.Deref(e.Conditions.Ready, true) && len(e.Addresses) > 0 {
					all = append(all, net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*p.Port))))
				}
			}
		}
	}
	return all, nil
}

// presented returns the certificate that is served at an address. That is asked
// instead of the Secret: it is what counts, and nobody who looks needs its key.
func presented(ctx context.Context, address, host string) (*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	dialer := &tls.Dialer{Config: &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: host,
		InsecureSkipVerify: true, // nothing is sent; Decide verifies against each caBundle
	}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	defer func() { _ = conn.Close() }()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}
