// Package deletionflow decides what a PodDeletionFlowControl does with a deletion:
// whether it is counted, whether it is within the limits, whether the breaker is
// open, and how many recent deletions each user, owner and namespace has
// (status.shares). Package internal/deletionwindow counts the windows.
//
// It is pure and idempotent: one request may be decided many times, by several
// replicas, on an object that may contain the decision already.
package deletionflow

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/deletionwindow"
)

// Pod is a pod that a request deletes.
type Pod struct {
	Labels map[string]string
	// Completed reports whether its containers have terminated for good.
	Completed, Terminating bool
	// Unscheduled reports whether it has no node, so that its deletion stops nothing.
	Unscheduled bool
}

// Namespace is the namespace of a request, or its object.
type Namespace struct {
	Name   string
	Labels map[string]string
	// Terminating reports whether it was deleted before; then its pods were counted.
	Terminating bool
}

// Request is a deletion of a pod or of a namespace, or an eviction.
type Request struct {
	// UID is the UID of the object. A repeated request counts once, if a namespace has not grown.
	UID       types.UID
	Namespace Namespace
	// Pods are the deleted pod, or all pods of the deleted namespace.
	Pods []Pod
	// Eviction reports whether it uses the eviction API, as kubectl drain does.
	Eviction bool
	// OfNamespace reports whether a namespace is deleted.
	OfNamespace bool
	// DryRun is decided but not counted.
	DryRun bool
	// User is who requests it; Owner is the topmost known controller of the pod.
	User, Owner string
}

// Reasons why a request is not counted. They are decisions in a metric.
const (
	NamespaceTerminating = "NamespaceTerminating"
	OutOfScope           = "OutOfScope"
	EvictionNotCounted   = "EvictionNotCounted"
	WhiteListed          = "WhiteListed"
	PodCompleted         = "PodCompleted"
	PodTerminating       = "PodTerminating"
	PodUnscheduled       = "PodUnscheduled"
	NothingActive        = "NothingActive"
)

// Count decides how many deletions a request counts as, and why it counts as none.
func Count(spec *v1alpha1.PodDeletionFlowControlSpec, r Request) (n int64, why string) {
	switch {
	case r.Namespace.Terminating:
		return 0, NamespaceTerminating
	case spec.NamespaceSelector != nil && !selects(spec.NamespaceSelector, r.Namespace.Labels, true):
		return 0, OutOfScope
	case r.Eviction && spec.CountEvictions != nil && !*spec.CountEvictions:
		return 0, EvictionNotCounted
	}
	why = NothingActive
	for _, p := range r.Pods {
		if reason := notCountedReason(spec, p); reason == "" {
			n++
		} else if !r.OfNamespace {
			why = reason
		}
	}
	if n > 0 {
		return n, ""
	}
	return 0, why
}

// notCountedReason returns why the deletion of a pod is not counted; empty if it is.
func notCountedReason(spec *v1alpha1.PodDeletionFlowControlSpec, p Pod) string {
	switch {
	case p.Terminating:
		return PodTerminating
	case p.Completed:
		return PodCompleted
	case p.Unscheduled:
		return PodUnscheduled
	case spec.WhiteListSelector != nil && selects(spec.WhiteListSelector, p.Labels, false):
		return WhiteListed
	default:
		return ""
	}
}

// selects reports whether a selector matches labels. For an invalid selector, which
// admission denies, it returns ifInvalid: callers pass the value that counts more.
func selects(s *metav1.LabelSelector, of map[string]string, ifInvalid bool) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return ifInvalid
	}
	return selector.Matches(labels.Set(of))
}

// shortestRule returns the rule whose interval is the half-life of the shares.
func shortestRule(p deletionwindow.Policy) (r deletionwindow.Rule) {
	if len(p.Rules) > 0 {
		r = p.Rules[0]
	}
	return r
}
