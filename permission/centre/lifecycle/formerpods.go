package lifecycle

import (
	"context"
	"fmt"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// revokeFormerPods revokes the applications of other pods that had an address of the pod.
// An address belongs to one pod of a cluster, so these pods have ended even if nobody
// reported it: their finalizer may have been removed. Pods with hostNetwork share an
// address.
//
// A late request of a pod must not revoke the permissions of the next pod with its address:
// only the first request of a pod for an address revokes them, and only if the pod has not
// ended.
func (e *Engine) revokeFormerPods(ctx context.Context, r api.ApplicationRequest, user string) error {
	if r.HostNetwork {
		return nil
	}
	view := e.Store.View(ctx)
	if ended, err := view.PodEnded(r.Cluster, r.PodUID); err != nil || ended {
		return err
	}
	for _, ip := range r.PodIPs {
		own, err := view.Applications(store.Filter{Cluster: r.Cluster, PodUID: r.PodUID, IP: ip}, store.Page{Limit: 1})
		if err != nil {
			return fmt.Errorf("list the applications of pod %s/%s: %w", r.Namespace, r.Pod, err)
		}
		if len(own) > 0 {
			continue
		}
		if err := e.revokeOthersAt(ctx, ip, r, user); err != nil {
			return fmt.Errorf("revoke the permissions of former pods with address %s: %w", ip, err)
		}
	}
	return nil
}

func (e *Engine) revokeOthersAt(ctx context.Context, ip string, r api.ApplicationRequest, user string) error {
	for page := (store.Page{Limit: 100}); ; {
		apps, err := e.Store.View(ctx).Applications(store.Filter{Cluster: r.Cluster, IP: ip, States: activeStates}, page)
		if err != nil {
			return err
		}
		for _, a := range apps {
			page.After = a.ID
			if a.Request.PodUID == r.PodUID || a.Request.HostNetwork {
				continue
			}
			e.Log.Warn("the address of a pod belongs to a new pod; its permissions are revoked", "ip", ip, "cluster", r.Cluster,
				"pod", a.Request.Namespace+"/"+a.Request.Pod, "newPod", r.Namespace+"/"+r.Pod, "application", a.ID)
			if _, _, _, err := e.Revoke(ctx, a.ID, user); err != nil {
				return err
			}
		}
		if len(apps) < page.Limit {
			return nil
		}
	}
}
