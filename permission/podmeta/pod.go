package podmeta

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
)

// InitContainer returns the pod's init container of ours, nil without one.
func InitContainer(p *corev1.Pod) *corev1.Container {
	for i := range p.Spec.InitContainers {
		if p.Spec.InitContainers[i].Name == protocol.ContainerName {
			return &p.Spec.InitContainers[i]
		}
	}
	return nil
}

// Sets are what the pod asks for: what stands in the environment of its init
// container, which nobody can change once the pod is there.
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

// IPs are the pod's addresses, as the API server has them.
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
	return ips
}

// HasFinalizer says whether the pod waits for its permissions to be revoked.
func HasFinalizer(p *corev1.Pod) bool { return slices.Contains(p.Finalizers, Finalizer) }

// Condition returns the pod's condition of a type, nil without one.
func Condition(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}
