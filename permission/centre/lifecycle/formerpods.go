package lifecycle

import (
	"context"
	"fmt"
	"slices"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// applicationsOfFormerPods returns the applications of other pods that had an address of the pod.
// An address belongs to one pod of a cluster, so these pods have ended even if nobody
// reported it: their finalizer may have been removed. Pods with hostNetwork share an
// address.
//
// A late request of a pod must not revoke the permissions of the next pod with its address:
// only the first request of a pod for an address revokes them. atAddresses contains at least all
// applications at the addresses that are in a state before revocation or belong to the pod.
func applicationsOfFormerPods(r api.ApplicationRequest, atAddresses []store.ApplicationAt) (former []store.ApplicationAt) {
	if r.HostNetwork {
		return nil
	}
	for _, ip := range r.PodIPs {
		var others []store.ApplicationAt
		own := false
		for _, a := range atAddresses {
			switch {
			case a.IP != ip:
			case a.Request.PodUID == r.PodUID:
				own = true
			case !a.Request.HostNetwork && slices.Contains(statesBeforeRevocation, a.State):
				others = append(others, a)
			}
		}
		if !own {
			former = append(former, others...)
		}
	}
	return former
}

// revokeFormerPods revokes the applications of former pods.
func (e *Engine) revokeFormerPods(ctx context.Context, r api.ApplicationRequest, former []store.ApplicationAt, user string) error {
	for _, a := range former {
		e.Log.Warn("a new pod has the address of a former pod; the permissions of the former pod are revoked", "ip", a.IP, "cluster", r.Cluster,
			"pod", a.Request.Namespace+"/"+a.Request.Pod, "newPod", r.Namespace+"/"+r.Pod, "application", a.ID)
		if _, _, _, err := e.Revoke(ctx, a.ID, user); err != nil {
			return fmt.Errorf("revoke the permissions of former pods with address %s: %w", a.IP, err)
		}
	}
	return nil
}
