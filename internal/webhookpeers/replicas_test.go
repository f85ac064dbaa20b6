package webhookpeers

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

func TestReady(t *testing.T) {
	endpoint := func(name string, ready *bool, addresses ...string) discoveryv1.Endpoint {
		e := discoveryv1.Endpoint{Addresses: addresses, Conditions: discoveryv1.EndpointConditions{Ready: ready}}
		if name != "" {
			e.TargetRef = &corev1.ObjectReference{Name: name}
		}
		return e
	}
	slice := func(port string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{Endpoints: endpoints, Ports: []discoveryv1.EndpointPort{
			{Name: new("http-metrics"), Port: new(int32(9090))}, {Name: new(port), Port: new(int32(8443))}, {Name: new("no-port")},
		}}
	}
	for name, tc := range map[string]struct {
		slices []*discoveryv1.EndpointSlice
		want   []Replica
	}{
		"no slice": {},
		"replicas of all slices": {
			[]*discoveryv1.EndpointSlice{slice(Port, endpoint("a", new(true), "10.0.0.1")), slice(Port, endpoint("b", new(true), "fd00::2"))},
			[]Replica{{"a", "10.0.0.1:8443"}, {"b", "[fd00::2]:8443"}},
		},
		"unknown readiness counts as ready": {[]*discoveryv1.EndpointSlice{slice(Port, endpoint("a", nil, "10.0.0.1"))}, []Replica{{"a", "10.0.0.1:8443"}}},
		"not a replica that is not ready":   {[]*discoveryv1.EndpointSlice{slice(Port, endpoint("a", new(false), "10.0.0.1"))}, nil},
		"not an endpoint without address":   {[]*discoveryv1.EndpointSlice{slice(Port, endpoint("a", new(true)))}, nil},
		"an endpoint without a pod":         {[]*discoveryv1.EndpointSlice{slice(Port, endpoint("", new(true), "10.0.0.1"))}, []Replica{{"", "10.0.0.1:8443"}}},
		"the first address":                 {[]*discoveryv1.EndpointSlice{slice(Port, endpoint("a", new(true), "10.0.0.1", "10.0.0.2"))}, []Replica{{"a", "10.0.0.1:8443"}}},
		"not a slice with another port":     {[]*discoveryv1.EndpointSlice{slice("https", endpoint("a", new(true), "10.0.0.1"))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Ready(tc.slices...); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestAddressesByNameOmitsReplicasWithoutAName(t *testing.T) {
	got := AddressesByName([]Replica{{"a", "10.0.0.1:8443"}, {"", "10.0.0.2:8443"}})
	if want := map[string]string{"a": "10.0.0.1:8443"}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
