package version

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/knativetraffic"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// TrafficInput is everything that the traffic of a Knative Service depends on when an update is
// admitted that does not create the Service, and no Revision has failed its check.
type TrafficInput struct {
	// Service is the name of the Service.
	Service string
	// JudgeBeforeTraffic: annotation judge-before-traffic is true, and holds are enabled.
	JudgeBeforeTraffic bool
	// Released: the update changes the template.
	Released bool
	// ByController: our controller made the update.
	ByController bool
	// HoldBefore is the hold of the old object if it is of the kind that ends when the first batch passed
	// (IsUntilJudged); otherwise nil.
	HoldBefore *v1alpha1.Hold
	// HoldInRequest is the hold in the request: that of the old object, the one that the first call of the API
	// server added before it repeats the call, or that of a manifest which was saved during a hold.
	HoldInRequest *v1alpha1.Hold
	// Ready is the latest Revision that is Ready before the update; empty if there is none.
	Ready string
	// After is spec.traffic after the update.
	After knativetraffic.Split
}

// Outcomes for the traffic.
const (
	// TrafficUnchanged: spec.traffic stays as the update has it.
	TrafficUnchanged = "Unchanged"
	// TrafficPinned: the new Revision gets no traffic until its first batch passed.
	TrafficPinned = "Pinned"
	// TrafficKept: the hold stays. If the update sets spec.traffic back to its value before the hold,
	// the value of the hold is written again.
	TrafficKept = "Kept"
	// TrafficRestored: the hold ends.
	TrafficRestored = "Restored"
)

// TrafficDecision is what happens with the traffic.
type TrafficDecision struct {
	Outcome string
	// Held is the record of a new hold; nil unless Pinned.
	Held *v1alpha1.HeldTraffic
	// Split is spec.traffic; nil if it does not change.
	Split knativetraffic.Split
}

// DecideTraffic decides about the traffic of a Knative Service.
//
// A release during a hold continues the hold, because neither of the two new Revisions is judged. A
// rollback by our controller begins no hold: its version has succeeded, and the latest Revision that is
// Ready is the one it replaces. An update without a release that sets spec.traffic back to its value
// before the hold is changed to the value of the hold: a GitOps tool writes it at each sync. Any other
// value is that of a person, and stays.
func DecideTraffic(in TrafficInput) TrafficDecision {
	switch {
	case in.Released && in.JudgeBeforeTraffic && (in.HoldBefore != nil || !in.ByController):
		return pin(in)
	case in.Released && in.HoldBefore != nil:
		return TrafficDecision{Outcome: TrafficRestored}
	case in.Released || in.HoldBefore == nil || in.ByController:
		return TrafficDecision{Outcome: TrafficUnchanged}
	}
	held, asked := in.HoldBefore.Traffic, in.asked()
	if held == nil || !knativetraffic.Same(asked, held.Former) {
		return TrafficDecision{Outcome: TrafficKept}
	}
	split, _ := knativetraffic.Pin(asked, held.To, in.Service)
	return TrafficDecision{Outcome: TrafficKept, Split: in.changed(split)}
}

// pin decides about a release that is judged before it gets traffic.
func pin(in TrafficInput) TrafficDecision {
	to, asked := in.Ready, in.asked()
	if in.HoldBefore != nil && in.HoldBefore.Traffic != nil {
		to = in.HoldBefore.Traffic.To
	}
	split, pinned := knativetraffic.Pin(asked, to, in.Service)
	switch {
	case pinned:
		return TrafficDecision{TrafficPinned, &v1alpha1.HeldTraffic{To: to, Former: asked}, in.changed(split)}
	case in.HoldBefore != nil:
		return TrafficDecision{Outcome: TrafficRestored} // a person named the Revisions
	default:
		return TrafficDecision{Outcome: TrafficUnchanged}
	}
}

// asked returns the split that the author of the update wants. If spec.traffic has the split that a hold
// wrote, that is the former split in the hold. A forged hold gives no advantage: its author could write
// the former split directly.
func (in TrafficInput) asked() knativetraffic.Split {
	for _, hold := range []*v1alpha1.Hold{in.HoldInRequest, in.HoldBefore} {
		if hold == nil || hold.Traffic == nil {
			continue
		}
		if split, ok := knativetraffic.Pin(hold.Traffic.Former, hold.Traffic.To, in.Service); ok && knativetraffic.Same(in.After, split) {
			return knativetraffic.Defaulted(hold.Traffic.Former)
		}
	}
	return knativetraffic.Defaulted(in.After)
}

// changed returns the split, or nil if the update has it already.
func (in TrafficInput) changed(split knativetraffic.Split) knativetraffic.Split {
	if knativetraffic.Same(in.After, split) {
		return nil
	}
	return split
}

// decideTraffic decides about the traffic of a Knative Service; of other kinds there is none.
func (h Handler) decideTraffic(ctx context.Context, c admission.Change) TrafficDecision {
	if c.New.Kind.Revisions != workload.KnativeRevisions || c.Old == nil {
		return TrafficDecision{Outcome: TrafficUnchanged}
	}
	in := TrafficInput{
		Service: c.New.Name, JudgeBeforeTraffic: h.judgesBeforeTraffic(ctx, c), Released: c.TemplateChanged, ByController: c.ByController(),
		HoldInRequest: v1alpha1.HoldOf(c.New.Annotations), Ready: c.Old.ReadyRevision, After: c.New.Traffic,
	}
	if hold := v1alpha1.HoldOf(c.Old.Annotations); hold.IsUntilJudged() {
		in.HoldBefore = hold
	}
	return DecideTraffic(in)
}

// judgesBeforeTraffic reports whether a release gets no traffic until its first batch passed. If the namespace
// cannot be read, a hold goes on, and no other begins: most namespaces do not have the annotation.
func (h Handler) judgesBeforeTraffic(ctx context.Context, c admission.Change) bool {
	if !c.TemplateChanged || !h.Settings().Blocking {
		return false
	}
	if on, known := v1alpha1.JudgesBeforeTraffic(c.New.Annotations); known {
		return on
	}
	ctx, cancel := context.WithTimeout(ctx, namespaceTimeout)
	defer cancel()
	ns, err := h.Namespaces.Namespaces().Get(ctx, c.Old.Namespace, metav1.GetOptions{})
	if err != nil {
		logging.FromContext(ctx).Warnw("could not read whether releases are judged before they get traffic", "namespace", c.Old.Namespace, "error", err)
		return v1alpha1.HoldOf(c.Old.Annotations).IsUntilJudged()
	}
	on, _ := v1alpha1.JudgesBeforeTraffic(ns.Annotations)
	return on
}

// holdTraffic writes a hold of the traffic that begins or stays. For TrafficRestored it writes nothing:
// the callers end the hold as they end others.
func holdTraffic(m *admission.Mutation, c admission.Change, release v1alpha1.Release, traffic TrafficDecision) error {
	switch traffic.Outcome {
	case TrafficPinned:
		hold, err := json.Marshal(v1alpha1.Hold{Attempt: release.Attempt, UntilJudged: true, Traffic: traffic.Held})
		if err != nil {
			return fmt.Errorf("encode the hold: %w", err)
		}
		m.SetAnnotation(v1alpha1.HoldAnnotation, string(hold))
	case TrafficKept:
		m.SetAnnotation(v1alpha1.HoldAnnotation, c.Old.Annotations[v1alpha1.HoldAnnotation])
	default:
		return nil
	}
	m.Traffic = nil
	if traffic.Split != nil {
		m.Traffic = c.New.WriteTraffic(traffic.Split)
	}
	return nil
}
