// Package deletionflow decides what a PodDeletionFlowControl says about a deletion:
// whether it is counted, whether there is room for it, and whether the breaker
// is open. How windows are counted is in internal/deletionwindow.
//
// Its functions are pure: they may be asked many times about one request, by
// several replicas, and on an object that may hold the answer already.
package deletionflow

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/deletionwindow"
)

// Pod is one that would go.
type Pod struct {
	Labels map[string]string
	// Finished: its containers have ended. Terminating: it goes already.
	Finished, Terminating bool
}

// Namespace is the one that a request is in, or about.
type Namespace struct {
	Name   string
	Labels map[string]string
	// Terminating: it was deleted, and its pods were charged then.
	Terminating bool
}

// Request is a deletion of a pod or of a namespace, or an eviction.
type Request struct {
	// UID is that of the object: what is asked again counts once.
	UID       types.UID
	Namespace Namespace
	// Pods are those that would go: all of the namespace that is deleted, or one.
	Pods []Pod
	// Eviction: the API server was asked to evict the pod, as kubectl drain does.
	Eviction bool
	// OfNamespace: the namespace is deleted.
	OfNamespace bool
	// DryRun: nothing goes, so nothing is counted.
	DryRun bool
	// User is the author; Owner the topmost known controller of the pod.
	User, Owner string
}

// Why something is not counted. They are labels of a metric.
const (
	NamespaceTerminating = "NamespaceTerminating"
	OutOfScope           = "OutOfScope"
	EvictionNotCounted   = "EvictionNotCounted"
	WhiteListed          = "WhiteListed"
	PodFinished          = "PodFinished"
	PodTerminating       = "PodTerminating"
	NothingActive        = "NothingActive"
)

// Count returns how many deletions a request is, and why it is none.
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
		if exempt := exempt(spec, p); exempt == "" {
			n++
		} else if !r.OfNamespace {
			why = exempt
		}
	}
	if n > 0 {
		return n, ""
	}
	return 0, why
}

func exempt(spec *v1alpha1.PodDeletionFlowControlSpec, p Pod) string {
	switch {
	case p.Terminating:
		return PodTerminating
	case p.Finished:
		return PodFinished
	case spec.WhiteListSelector != nil && selects(spec.WhiteListSelector, p.Labels, false):
		return WhiteListed
	default:
		return ""
	}
}

// selects says whether a selector selects labels. For one that does not read,
// which admission refuses, unread is the answer by which more is counted.
func selects(s *metav1.LabelSelector, of map[string]string, unread bool) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return unread
	}
	return selector.Matches(labels.Set(of))
}

// shortest is the interval after which what was let through weighs less.
func shortestRule(t deletionwindow.Policy) (r deletionwindow.Rule) {
	if len(t.Rules) > 0 {
		r = t.Rules[0]
	}
	return r
}
