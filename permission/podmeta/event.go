package podmeta

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/permission/api"
)

// PermissionEvent returns the data of an event about an application of the pod.
func PermissionEvent(verb events.PermissionVerb, p *corev1.Pod, app api.Application) events.Permission {
	return events.Permission{
		Verb:        verb,
		Namespace:   p.Namespace,
		Pod:         p.Name,
		PodUID:      p.UID,
		IPs:         app.PodIPs,
		Set:         app.Set,
		Application: app.ID,
		Attempt:     int64(app.Attempt),
	}
}
