package podmeta

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
)

// InitContainer returns the init-action-client container of the pod, nil if there
// is none.
func InitContainer(p *corev1.Pod) *corev1.Container {
	for i := range p.Spec.InitContainers {
		if p.Spec.InitContainers[i].Name == protocol.ContainerName {
			return &p.Spec.InitContainers[i]
		}
	}
	return nil
}

// Sets returns the permission sets that the pod requests. It reads them from the
// environment of the init container, which is immutable.
func Sets(p *corev1.Pod) []string {
	c := InitContainer(p)
	if c == nil {
		return nil
	}
	for _, e := range c.Env {
		if e.Name == protocol.EnvSets {
			return strings.FieldsFunc(e.Value, func(r rune) bool { return r == ',' || r == ' ' })
		}
	}
	return nil
}

// IPs returns the pod's IP addresses in its status, sorted as in the applications of the centre.
func IPs(p *corev1.Pod) []string {
	var ips []string
	for _, ip := range p.Status.PodIPs {
		if ip.IP != "" {
			ips = append(ips, ip.IP)
		}
	}
	if len(ips) == 0 && p.Status.PodIP != "" {
		ips = append(ips, p.Status.PodIP)
	}
	slices.Sort(ips)
	return ips
}

// HasFinalizer reports whether the pod has Finalizer.
func HasFinalizer(p *corev1.Pod) bool { return slices.Contains(p.Finalizers, Finalizer) }
