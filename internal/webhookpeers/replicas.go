// Package webhookpeers lists the ready replicas of Breakwater's webhooks from the
// EndpointSlices of their Service, and sends an AdmissionReview to one of them.
package webhookpeers

import (
	"context"
	"fmt"
	"net"
	"strconv"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	discoveryclient "k8s.io/client-go/kubernetes/typed/discovery/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Port is the name of the webhook port in the Services of all webhooks.
const Port = "https-webhook"

// Replica is a ready replica of a webhook.
type Replica struct {
	// Name is the name of its pod; empty if the endpoint does not name one.
	Name string
	// Address is host:port.
	Address string
}

// Ready returns the replicas that are not marked unready in the EndpointSlices of a
// Service, each with its first address.
func Ready(slices ...*discoveryv1.EndpointSlice) []Replica {
	var all []Replica
	for _, s := range slices {
		port := portOf(s)
		if port == "" {
			continue
		}
		for _, e := range s.Endpoints {
			if !ptr.Deref(e.Conditions.Ready, true) || len(e.Addresses) == 0 {
				continue
			}
			r := Replica{Address: net.JoinHostPort(e.Addresses[0], port)}
			if e.TargetRef != nil {
				r.Name = e.TargetRef.Name
			}
			all = append(all, r)
		}
	}
	return all
}

// AddressesByName returns the addresses of the replicas that have a name.
func AddressesByName(all []Replica) map[string]string {
	out := map[string]string{}
	for _, r := range all {
		if r.Name != "" {
			out[r.Name] = r.Address
		}
	}
	return out
}

// ReadyAddresses returns the addresses of the ready replicas by the names of their pods. The lister has only
// the EndpointSlices of their Service.
func ReadyAddresses(lister discoverylisters.EndpointSliceLister) map[string]string {
	slices, err := lister.List(labels.Everything())
	if err != nil {
		return nil // a cache lister returns no error
	}
	return AddressesByName(Ready(slices...))
}

func portOf(s *discoveryv1.EndpointSlice) string {
	for _, p := range s.Ports {
		if ptr.Deref(p.Name, "") == Port && p.Port != nil {
			return strconv.Itoa(int(*p.Port))
		}
	}
	return ""
}

// List returns the ready replicas of a Service in the system namespace.
func List(ctx context.Context, client discoveryclient.EndpointSlicesGetter, service string) ([]Replica, error) {
	list, err := client.EndpointSlices(v1alpha1.SystemNamespace).List(ctx, metav1.ListOptions{
		LabelSelector: discoveryv1.LabelServiceName + "=" + service,
	})
	if err != nil {
		return nil, fmt.Errorf("list EndpointSlices of Service %s: %w", service, err)
	}
	slices := make([]*discoveryv1.EndpointSlice, len(list.Items))
	for i := range list.Items {
		slices[i] = &list.Items[i]
	}
	return Ready(slices...), nil
}
