package server

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/permission/settings"
)

// currentIPs returns the addresses of the pod: those in its status or, before the status has
// any, those that the CNI plugin announces. source is the source address of the request.
func (s *server) currentIPs(ctx context.Context, p *corev1.Pod, source string) []string {
	if ips := podmeta.IPs(p); len(ips) > 0 {
		return ips
	}
	a := s.Settings().AnnouncedAddress
	ips := announcedIPs(p, a, source)
	if len(ips) == 0 || !s.announcements.protects(ctx, a, p.CreationTimestamp.Time) {
		return nil
	}
	return ips
}

// announcedIPs returns the announced addresses of the pod, none if they are not trusted. The
// request must come from one of them: the announcement may be that of a previous sandbox, and
// then the server waits for the status.
func announcedIPs(p *corev1.Pod, a settings.AnnouncedAddress, source string) []string {
	if a.Annotation == "" || p.Spec.NodeName == "" || p.Spec.HostNetwork {
		return nil
	}
	ips := podmeta.ParseAnnounced(p.Annotations[a.Annotation])
	if !containsIP(ips, source) {
		return nil
	}
	return ips
}
