package version

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/change/suspend"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/knativetraffic"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// maxRequestDuration exceeds the request timeout of the API server.
const maxRequestDuration = time.Minute

// mutate returns the mutation for a change.
func mutate(c admission.Change, decision Decision, suspension suspend.Decision, traffic TrafficDecision, clock clock.PassiveClock) (admission.Mutation, error) {
	m, release := admission.NewMutation(c.New), decision.Release
	m.SetLabel(v1alpha1.VersionKey, release.Version)
	m.SetAnnotation(v1alpha1.VersionKey, release.Version)
	m.SetAnnotation(v1alpha1.AttemptAnnotation, strconv.FormatInt(release.Attempt, 10))
	m.Template = writeTemplate(c, decision)
	switch {
	case c.Old == nil:
		resetForCreation(&m, c)
	case suspension.Bypass():
		if err := recordBypass(&m, c, release, suspension, traffic, clock.Now()); err != nil {
			return admission.Mutation{}, err
		}
	default:
		restoreAnnotations(&m, c)
		if suspension.Outcome == suspend.Deny {
			break
		}
		if v1alpha1.HoldOf(c.Old.Annotations).IsWithoutSuspension() && c.TemplateChanged {
			m.Traffic = c.New.RestoreTraffic(v1alpha1.RestorableTrafficOf(c.Old.Labels, c.Old.Annotations))
			resume(&m, c, c.Old.Annotations)
		}
		keepUnjudgedHold(&m, c)
		if err := holdTraffic(&m, c, release, traffic); err != nil {
			return admission.Mutation{}, err
		}
	}
	if c.Old != nil {
		keepRollbackAnnotation(&m, c, decision)
		keepRollbackRequest(&m, c, decision)
	}
	// If the repair is denied, the label stays: the validating webhook reads it.
	if suspension.Outcome != suspend.Deny {
		delete(m.Labels, v1alpha1.IgnoredSuspendLabel)
	}
	return m, nil
}

// writeTemplate writes a new release on the template of a Knative Service. Otherwise the template
// keeps the release that it has: a change would create a Revision. The template of a baseline has
// none.
func writeTemplate(c admission.Change, decision Decision) []workload.Operation {
	if decision.Outcome == Released {
		return c.New.WriteTemplateRelease(decision.Release.Version, strconv.FormatInt(decision.Release.Attempt, 10))
	}
	if c.Old == nil {
		return nil
	}
	return c.New.WriteTemplateRelease(c.Old.TemplateRelease())
}

// resetForCreation removes the state of an earlier workload that a saved manifest may
// contain: a created workload is a new release. The hold ends together with its annotation.
//
// The suspension is removed if there is a hold or bypass annotation, because then
// Breakwater set it. A suspend label without either is a freeze by a user.
func resetForCreation(m *admission.Mutation, c admission.Change) {
	_, held := c.New.Annotations[v1alpha1.HoldAnnotation]
	_, bypassed := c.New.Annotations[v1alpha1.BypassAnnotation]
	if held || bypassed {
		delete(m.Labels, v1alpha1.SuspendLabel)
	}
	delete(m.Labels, v1alpha1.DefenseStatusLabel)
	delete(m.Annotations, v1alpha1.BypassAnnotation)
	delete(m.Annotations, v1alpha1.RollbackAnnotation)
	m.Traffic = restoreTraffic(c, c.New.Annotations)
	resume(m, c, c.New.Annotations)
}

// recordBypass records the user of a bypass and resumes the rollout. The suspend label
// stays until this release succeeds, even if the update removes it (`kubectl replace`,
// for instance).
//
// If no Revision of a Knative Service has failed, the traffic is decided as that of other releases:
// a person has suspended the Service.
func recordBypass(m *admission.Mutation, c admission.Change, to v1alpha1.Release, suspension suspend.Decision, decided TrafficDecision, now time.Time) error {
	kind := v1alpha1.BypassRollback
	if suspension.Outcome == suspend.Repair {
		kind = v1alpha1.BypassRepair
	}
	suspended := c.Old.Labels[v1alpha1.SuspendLabel]
	traffic, ops := keepTraffic(c)
	untilJudged := false
	if !hasFailed(c, traffic) {
		switch decided.Outcome {
		case TrafficPinned:
			untilJudged, traffic, ops = true, nil, nil
		case TrafficRestored:
			traffic, ops = nil, restoreTraffic(c, c.Old.Annotations)
		}
	}
	m.Traffic = ops
	bypass, err := json.Marshal(v1alpha1.Bypass{
		Kind: kind, User: c.User.Username, Suspend: suspended, Attempt: to.Attempt, Time: admissionTime(c, now),
		Freeze: freezeOf(c), Traffic: traffic,
	})
	if err != nil {
		return fmt.Errorf("encode the bypass: %w", err)
	}
	m.SetAnnotation(v1alpha1.BypassAnnotation, string(bypass))
	m.SetLabel(v1alpha1.SuspendLabel, suspended)
	resume(m, c, c.Old.Annotations)
	if untilJudged {
		return holdTraffic(m, c, to, decided)
	}
	return nil
}

// freezeOf returns the value of the suspend label that is restored after the bypass: that with which a person
// had suspended the workload before its check failed, because the hold annotation, which has it, is removed. The
// suspension of a workload that has not failed ends with the repair or rollback of a person, and outlives an
// automatic rollback.
func freezeOf(c admission.Change) string {
	suspended := v1alpha1.SuspensionOf(c.Old.Labels)
	freeze, recorded := v1alpha1.FreezeOf(c.Old.Labels, c.Old.Annotations)
	if recorded && freeze != suspended {
		return freeze
	}
	if r := v1alpha1.RollbackOf(c.New.Annotations); c.ByController() && r != nil && r.Kind != v1alpha1.RollbackRequested {
		return suspended
	}
	return ""
}

// hasFailed reports whether a suspended Knative Service has a Revision that failed its check. The latest
// Revision that is Ready may be the failed one, so it must get no traffic. kept is the traffic that the
// suspension keeps.
func hasFailed(c admission.Change, kept *v1alpha1.HeldTraffic) bool {
	hold := v1alpha1.HoldOf(c.Old.Annotations)
	return !hold.IsUntilJudged() && (kept != nil || hold.Suspends())
}

// keepTraffic keeps the traffic of a suspended Knative Service at the good Revision until the repair
// succeeds, also if the update has another split: the latest Revision that is Ready is the failed one.
func keepTraffic(c admission.Change) (*v1alpha1.HeldTraffic, []workload.Operation) {
	held := v1alpha1.HeldTrafficOf(c.Old.Labels, c.Old.Annotations)
	if held == nil {
		return nil, nil
	}
	kept, changed := knativetraffic.Move(c.New.Traffic, knativetraffic.Revisions{Names: held.Failed, Latest: true}, held.To)
	if changed {
		return &v1alpha1.HeldTraffic{Failed: held.Failed, To: held.To, Former: c.New.Traffic}, c.New.WriteTraffic(kept)
	}
	// In a repeated call of the API server the first one has recorded the split that the update asks for.
	if added := suspend.AddedBypass(c); added != nil && added.Traffic != nil {
		held.Former = added.Traffic.Former
	}
	return held, nil
}

// admissionTime returns the time of the bypass: now, or, in a repeated call of the API
// server, the time already recorded. A time set by a user is ignored.
func admissionTime(c admission.Change, now time.Time) metav1.Time {
	if bypass := suspend.AddedBypass(c); bypass != nil && now.Sub(bypass.Time.Time).Abs() <= maxRequestDuration {
		return bypass.Time
	}
	return metav1.NewTime(now.UTC().Truncate(time.Second))
}

// resume ends a hold: it removes its annotation and restores the recorded value of the
// field that stops the rollout, unless this change sets the field, or a user applied a
// manifest that pauses the rollout. If the annotation is malformed, the field is removed.
func resume(m *admission.Mutation, c admission.Change, recorded map[string]string) {
	_, held := recorded[v1alpha1.HoldAnnotation]
	delete(m.Annotations, v1alpha1.HoldAnnotation)
	// A manifest that is saved while the workload is held sets the field, too.
	if !held || c.Old != nil && c.New.ManifestPauses() {
		return
	}
	m.Rollout = c.New.Resume(ptr.Deref(v1alpha1.HoldOf(recorded), v1alpha1.Hold{}).Former)
}

// restoreTraffic moves the traffic of a Knative Service back when this change ends a hold.
func restoreTraffic(c admission.Change, recorded map[string]string) []workload.Operation {
	if hold := v1alpha1.HoldOf(recorded); hold != nil {
		return c.New.RestoreTraffic(hold.Traffic)
	}
	return nil
}

// restoreAnnotations reverts changes of annotations that only Breakwater may write. A
// new hold annotation comes from a revision: `kubectl rollout undo` copies all
// annotations of a ReplicaSet to the Deployment. Or it comes from a manifest that was saved
// during a hold: then the traffic that the hold replaced is restored, too.
func restoreAnnotations(m *admission.Mutation, c admission.Change) {
	if value, kept := suspend.KeptBypass(c); kept {
		m.SetAnnotation(v1alpha1.BypassAnnotation, value)
	} else {
		delete(m.Annotations, v1alpha1.BypassAnnotation)
	}
	if _, held := c.Old.Annotations[v1alpha1.HoldAnnotation]; !held && !c.ByController() {
		delete(m.Annotations, v1alpha1.HoldAnnotation)
		if v1alpha1.HoldOf(c.New.Annotations).IsUntilJudged() {
			m.Traffic = restoreTraffic(c, c.New.Annotations)
		}
	}
}

// keepUnjudgedHold reverts changes of the annotation of a hold because of unjudged pods or an unjudged order. Without
// the annotation the controller would hold again a rollout that a person has resumed. An update that also removes
// Breakwater's other annotations (`kubectl replace`, for instance) does not resume the rollout: a GitOps controller
// may repeat it at each sync.
func keepUnjudgedHold(m *admission.Mutation, c admission.Change) {
	hold := v1alpha1.HoldOf(c.Old.Annotations)
	if hold == nil || !hold.Unjudged || c.TemplateChanged || c.ByController() {
		return
	}
	m.SetAnnotation(v1alpha1.HoldAnnotation, c.Old.Annotations[v1alpha1.HoldAnnotation])
	_, known := v1alpha1.ReleaseOf(c.New.Annotations)
	if !known && c.Old.PausedOrHeld() && !c.Old.Kind.HoldChangedNothing(hold.Former) {
		m.Rollout = c.New.Stop()
	}
}

// keepRollbackAnnotation reverts changes of the rollback annotation, which only the controller writes: its release is
// not judged by metrics. `kubectl rollout undo` copies that of a ReplicaSet, too. If the annotation of the old object
// already names the attempt that this update gets, or a later one, a user wrote it while the webhook did not answer:
// it is removed. Writes of the controller are not checked, except a readmission, which never writes this annotation.
func keepRollbackAnnotation(m *admission.Mutation, c admission.Change, decision Decision) {
	if c.ByController() && !c.Readmission() {
		return
	}
	value, recorded := c.Old.Annotations[v1alpha1.RollbackAnnotation]
	last := v1alpha1.RollbackOf(c.Old.Annotations)
	if !recorded || decision.Outcome == Released && last != nil && last.Attempt >= decision.Release.Attempt {
		delete(m.Annotations, v1alpha1.RollbackAnnotation)
		return
	}
	m.SetAnnotation(v1alpha1.RollbackAnnotation, value)
}

// keepRollbackRequest reverts the rollback request that `kubectl rollout undo` copies from a ReplicaSet: it
// names an earlier release, and a policy lets nobody but its user write it. No request of an update that changes
// the template has an effect, unless it names the release of this update.
func keepRollbackRequest(m *admission.Mutation, c admission.Change, decision Decision) {
	_, requested := c.New.Annotations[v1alpha1.RollbackRequestAnnotation]
	request := v1alpha1.RollbackRequestOf(c.New.Annotations)
	if !requested || decision.Outcome != Released || request != nil && request.Attempt == decision.Release.Attempt {
		return
	}
	delete(m.Annotations, v1alpha1.RollbackRequestAnnotation)
	if value, recorded := c.Old.Annotations[v1alpha1.RollbackRequestAnnotation]; recorded {
		m.SetAnnotation(v1alpha1.RollbackRequestAnnotation, value)
	}
}
