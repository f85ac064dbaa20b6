package deletionflow

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

func TestWhichRequestsAreCounted(t *testing.T) {
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}}
	labeled := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	spec := func(change func(*v1alpha1.PodDeletionFlowControlSpec)) v1alpha1.PodDeletionFlowControlSpec {
		s := v1alpha1.PodDeletionFlowControlSpec{WhiteListSelector: labeled("tier", "batch")}
		change(&s)
		return s
	}
	plain := spec(func(*v1alpha1.PodDeletionFlowControlSpec) {})
	pod := func(change func(*Request)) Request {
		r := Request{UID: "1", Namespace: Namespace{Name: "shop", Labels: map[string]string{"env": "prod"}}, Pods: []Pod{{}}}
		change(&r)
		return r
	}
	batch := Pod{Labels: map[string]string{"tier": "batch"}}
	for name, tc := range map[string]struct {
		spec v1alpha1.PodDeletionFlowControlSpec
		r    Request
		n    int64
		why  string
	}{
		"a pod":                             {plain, pod(func(*Request) {}), 1, ""},
		"an eviction":                       {plain, pod(func(r *Request) { r.Eviction = true }), 1, ""},
		"a completed pod":                   {plain, pod(func(r *Request) { r.Pods[0].Completed = true }), 0, PodCompleted},
		"an unscheduled pod":                {plain, pod(func(r *Request) { r.Pods[0].Unscheduled = true }), 0, PodUnscheduled},
		"an eviction of an unscheduled pod": {plain, pod(func(r *Request) { r.Eviction, r.Pods[0].Unscheduled = true, true }), 0, PodUnscheduled},
		"a terminating pod":                 {plain, pod(func(r *Request) { r.Pods[0].Terminating = true }), 0, PodTerminating},
		"a white-listed pod": {plain, pod(func(r *Request) { r.Pods[0] = batch }),
			0, WhiteListed},
		"an invalid white list selects none": {spec(func(s *v1alpha1.PodDeletionFlowControlSpec) { s.WhiteListSelector = broken }),
			pod(func(r *Request) { r.Pods[0] = batch }), 1, ""},
		"an eviction without countEvictions": {spec(func(s *v1alpha1.PodDeletionFlowControlSpec) { s.CountEvictions = new(false) }),
			pod(func(r *Request) { r.Eviction = true }), 0, EvictionNotCounted},
		"a deletion without countEvictions": {spec(func(s *v1alpha1.PodDeletionFlowControlSpec) { s.CountEvictions = new(false) }),
			pod(func(*Request) {}), 1, ""},
		"a pod of a terminating namespace": {plain, pod(func(r *Request) { r.Namespace.Terminating = true }), 0, NamespaceTerminating},
		"a pod of a selected namespace": {spec(func(s *v1alpha1.PodDeletionFlowControlSpec) { s.NamespaceSelector = labeled("env", "prod") }),
			pod(func(*Request) {}), 1, ""},
		"a pod of another namespace": {spec(func(s *v1alpha1.PodDeletionFlowControlSpec) { s.NamespaceSelector = labeled("env", "test") }),
			pod(func(*Request) {}), 0, OutOfScope},
		"an empty selector selects all": {spec(func(s *v1alpha1.PodDeletionFlowControlSpec) { s.NamespaceSelector = &metav1.LabelSelector{} }),
			pod(func(*Request) {}), 1, ""},
		"an invalid selector selects all": {spec(func(s *v1alpha1.PodDeletionFlowControlSpec) { s.NamespaceSelector = broken }),
			pod(func(*Request) {}), 1, ""},
		"a namespace counts its active pods": {plain, pod(func(r *Request) {
			r.OfNamespace, r.Pods = true, []Pod{{}, {}, batch, {Completed: true}, {Terminating: true}}
		}), 2, ""},
		"a namespace without active pods": {plain, pod(func(r *Request) { r.OfNamespace, r.Pods = true, []Pod{batch} }), 0, NothingActive},
		"an empty namespace":              {plain, pod(func(r *Request) { r.OfNamespace, r.Pods = true, nil }), 0, NothingActive},
		"a terminating namespace": {plain, pod(func(r *Request) { r.OfNamespace, r.Namespace.Terminating = true, true }),
			0, NamespaceTerminating},
	} {
		if n, why := Count(&tc.spec, tc.r); n != tc.n || why != tc.why {
			t.Errorf("%s: %d %s", name, n, why)
		}
	}
}
