package budget

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Owner is a controller above a pod.
type Owner struct {
	Group, Kind, Name string
	UID               types.UID
	// TerminatingOrGone reports whether the owner is terminating or not found.
	TerminatingOrGone bool
}

// Chain has a pod's controller, the controller of that one, and so on. It is
// empty for an orphan.
type Chain []Owner

// Topmost returns the last owner; false for an orphan.
func (c Chain) Topmost() (Owner, bool) {
	if len(c) == 0 {
		return Owner{}, false
	}
	return c[len(c)-1], true
}

// Below returns the owners below the one with the UID: those that remain above the pod after
// an orphaning deletion of that owner.
func (c Chain) Below(uid types.UID) Chain {
	if i := slices.IndexFunc(c, func(o Owner) bool { return o.UID == uid }); i >= 0 {
		return c[:i]
	}
	return c
}

// TopmostTerminatingOrGone reports whether the topmost controller is terminating or not found.
// Then the application is being deleted.
func (c Chain) TopmostTerminatingOrGone() bool {
	top, ok := c.Topmost()
	return ok && top.TerminatingOrGone
}

// BeingDeleted reports whether the pods are deleted with a controller above them, so that their deletion is not a
// disruption of its own: with the application, or with a pod, such as the leader of a group of LeaderWorkerSet. The
// budgets that cover that pod decided about its deletion, and in the foreground it ends only after that of the group.
func (c Chain) BeingDeleted() bool {
	return c.TopmostTerminatingOrGone() ||
		slices.ContainsFunc(c, func(o Owner) bool { return o.Group == "" && o.Kind == "Pod" && o.TerminatingOrGone })
}

// Revision returns the name of the Revision of Knative Serving above a pod; false if there is
// none. The names of Revisions are unique in a namespace, so the owners of the Revision need
// not be read.
func (c Chain) Revision() (name string, ok bool) {
	for _, o := range c {
		if IsRevision(o.Group, o.Kind) {
			return o.Name, true
		}
	}
	return "", false
}

// IsRevision reports whether a kind is that of Revisions of Knative Serving.
func IsRevision(group, kind string) bool {
	return group == workload.KnativeService.Group && kind == "Revision"
}

// Scope says which pods a budget covers.
type Scope struct {
	namespace string
	selector  labels.Selector
	group     string
	target    *v1alpha1.TargetRef
	// revisions are the Revisions with traffic, if the target is a Knative Service.
	revisions []string
}

// ScopeOf returns the scope of a budget, or an error if its selector is invalid.
func ScopeOf(b *v1alpha1.PodUnavailableBudget) (Scope, error) {
	s := Scope{namespace: b.Namespace, selector: labels.Nothing(), target: b.Spec.TargetRef}
	if s.target != nil {
		s.group = GroupOf(s.target.APIVersion)
		return s, nil
	}
	if b.Spec.Selector == nil {
		return s, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector.LabelSelector())
	if err != nil {
		return s, fmt.Errorf("parse the selector of PodUnavailableBudget %s/%s: %w", b.Namespace, b.Name, err)
	}
	s.selector = selector
	return s, nil
}

// NeedsChain reports whether Covers needs the owners of a pod.
func (s Scope) NeedsChain() bool { return s.target != nil }

// MayCover reports whether the budget covers the pod with some owners. It is false if
// the pod alone shows that it is not covered, and then its owners need not be read.
func (s Scope) MayCover(p *corev1.Pod) bool {
	if s.target == nil {
		return s.Covers(p, nil)
	}
	return p.Namespace == s.namespace && metav1.GetControllerOfNoCopy(p) != nil
}

// KnativeService returns the name of the Knative Service that is the target; false if the
// target is none. Then Covers needs the Revisions with traffic.
func (s Scope) KnativeService() (name string, ok bool) {
	if s.target == nil || s.group != workload.KnativeService.Group || s.target.Kind != workload.KnativeService.Kind {
		return "", false
	}
	return s.target.Name, true
}

// WithTraffic returns the scope of a budget whose target is a Knative Service: the pods of
// the Revisions that have traffic.
func (s Scope) WithTraffic(revisions []string) Scope {
	s.revisions = revisions
	return s
}

// RevisionsWithTraffic returns the Revisions of WithTraffic.
func (s Scope) RevisionsWithTraffic() []string { return s.revisions }

// Selects reports whether the selector of the budget matches labels. It is false if the budget has a target.
func (s Scope) Selects(of map[string]string) bool { return s.selector.Matches(labels.Set(of)) }

// Covers decides whether the budget covers a pod with these owners. Chain may be
// nil unless NeedsChain.
func (s Scope) Covers(p *corev1.Pod, chain Chain) bool {
	if p.Namespace != s.namespace {
		return false
	}
	if s.target == nil {
		return s.Selects(p.Labels)
	}
	if _, ok := s.KnativeService(); ok {
		revision, found := chain.Revision()
		return found && slices.Contains(s.revisions, revision)
	}
	for _, o := range chain {
		if o.Group == s.group && o.Kind == s.target.Kind && o.Name == s.target.Name {
			return true
		}
	}
	return false
}

// versionPattern matches an apiVersion of the core group.
var versionPattern = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// GroupOf returns the group of an apiVersion with or without a version: apps/v1,
// apps, v1.
func GroupOf(apiVersion string) string {
	if group, _, versioned := strings.Cut(apiVersion, "/"); versioned {
		return group
	}
	if versionPattern.MatchString(apiVersion) {
		return ""
	}
	return apiVersion
}
