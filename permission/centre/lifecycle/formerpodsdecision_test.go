package lifecycle

import (
	"testing"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

func TestOnlyActiveApplicationsOfOtherPodsAreThoseOfFormerPods(t *testing.T) {
	for name, tc := range map[string]struct {
		state       api.State
		podUID, ip  string
		hostNetwork bool
		want        bool
	}{
		"a granted application of another pod":        {state: api.Granted, podUID: "other", ip: "10.0.0.1", want: true},
		"a denied application of another pod":         {state: api.Denied, podUID: "other", ip: "10.0.0.1", want: true},
		"an application that is being revoked":        {state: api.Revoking, podUID: "other", ip: "10.0.0.1"},
		"a revoked application":                       {state: api.Revoked, podUID: "other", ip: "10.0.0.1"},
		"a leaked application":                        {state: api.Leaked, podUID: "other", ip: "10.0.0.1"},
		"an application at another address":           {state: api.Granted, podUID: "other", ip: "10.0.0.2"},
		"an application of a pod with hostNetwork":    {state: api.Granted, podUID: "other", ip: "10.0.0.1", hostNetwork: true},
		"an application of the pod itself":            {state: api.Granted, podUID: "uid", ip: "10.0.0.1"},
		"an application of the pod itself, in revoke": {state: api.Revoking, podUID: "uid", ip: "10.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			at := store.ApplicationAt{IP: tc.ip, Application: store.Application{State: tc.state,
				Request: api.ApplicationRequest{PodUID: tc.podUID, PodIPs: []string{tc.ip}, HostNetwork: tc.hostNetwork}}}
			former := applicationsOfFormerPods(api.ApplicationRequest{PodUID: "uid", PodIPs: []string{"10.0.0.1"}}, []store.ApplicationAt{at})
			if got := len(former) > 0; got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
