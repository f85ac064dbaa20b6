package changeworkload

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// The patches of this file begin with JSON Patch tests, so that they fail if the
// workload has another version by now: a newer template is never held.

// holdOperations stop a rollout in progress, and with ActionSuspend suspend the workload.
// The values that they replace are recorded, and only these are restored. An unjudged hold replaces the record of an
// earlier suspension, also that of an earlier release, so it ends this suspension.
func holdOperations(w *workload.Workload, in Input, action Action) ([]workload.Operation, error) {
	c, now := in.ChangeWorkload, in.Now
	hold, ops := newHold(w, c.Spec.Attempt), sameReleaseTests(w, c)
	if action == ActionSuspend {
		ops = append(ops,
			workload.Operation{Op: "add", Path: workload.Label(v1alpha1.SuspendLabel), Value: suspendValue(w, now)},
			workload.Operation{Op: "add", Path: workload.Label(v1alpha1.DefenseStatusLabel), Value: v1alpha1.DefenseStatusProcessed})
		ops = append(ops, endBypass(w)...)
	} else {
		hold.Freeze, hold.Unjudged = "", true
		if older := v1alpha1.HoldOf(w.Annotations); older != nil {
			ops = append(ops, endSuspension(w, older)...)
		}
	}
	var traffic []workload.Operation
	if w.Kind.Revisions == workload.KnativeRevisions && action == ActionSuspend {
		hold.Traffic, traffic = holdTraffic(w, in.Revisions)
	}
	encoded, err := json.Marshal(hold)
	if err != nil {
		return nil, fmt.Errorf("encode the hold of %s: %w", w.Name, err)
	}
	ops = append(ops, workload.Operation{Op: "add", Path: workload.Annotation(v1alpha1.HoldAnnotation), Value: string(encoded)})
	if w.InProgress {
		ops = append(ops, w.Stop()...)
	}
	return append(ops, traffic...), nil
}

// suspendValue returns the value of SuspendLabel: the start of the suspension as Unix time. It differs from that of the
// suspension that it replaces, because the bypass of a suspension is found by the value.
func suspendValue(w *workload.Workload, now time.Time) string {
	at := now.Unix()
	if w.Labels[v1alpha1.SuspendLabel] == strconv.FormatInt(at, 10) {
		at++ // a repair failed within a second
	}
	return strconv.FormatInt(at, 10)
}

// newHold returns the values that a hold of an attempt replaces.
func newHold(w *workload.Workload, attempt int64) v1alpha1.Hold {
	hold := v1alpha1.Hold{
		Attempt: attempt, Former: w.PauseValue, Freeze: v1alpha1.SuspensionOf(w.Labels),
		Traffic: v1alpha1.HeldTrafficOf(w.Labels, w.Annotations),
	}
	older := v1alpha1.HoldOf(w.Annotations)
	switch {
	case w.ManifestPauses():
		hold.Former = w.Kind.PauseField.Paused // also if an earlier hold had set the field
	case older != nil && w.PausedOrHeld():
		hold.Former = older.Former // the value is from the hold of an earlier attempt
	case !w.InProgress, w.OnDelete:
		hold.Former = w.Kind.PauseField.Paused // nothing is stopped
	}
	if freeze, recorded := v1alpha1.FreezeOf(w.Labels, w.Annotations); recorded {
		hold.Freeze = freeze // the suspension is that of an earlier attempt
	}
	return hold
}

// resumeOperations undo holdOperations. If the release that ends the hold is one that failed, its fail was overruled,
// and its Revisions get their traffic back. Those of other failed releases get none by name. The rollout stays stopped
// if a user applied a manifest that stops it to the held workload.
func resumeOperations(w *workload.Workload, in Input) []workload.Operation {
	ops := processedOperations(w, in.ChangeWorkload)
	hold := v1alpha1.HoldOf(w.Annotations)
	ops = append(ops, endSuspension(w, hold)...)
	if _, ok := w.Annotations[v1alpha1.HoldAnnotation]; ok {
		ops = append(ops, workload.Operation{Op: "remove", Path: workload.Annotation(v1alpha1.HoldAnnotation)})
	}
	if hold != nil && !w.ManifestPauses() {
		ops = append(ops, w.Resume(hold.Former)...)
	}
	return append(ops, w.RestoreTraffic(v1alpha1.RestorableTrafficOf(w.Labels, w.Annotations), in.Revisions.Own...)...)
}

// endSuspension ends a suspension by Breakwater. That of a person stays or is restored.
func endSuspension(w *workload.Workload, hold *v1alpha1.Hold) []workload.Operation {
	if hold.IsWithoutSuspension() {
		return nil // the hold has not suspended the workload
	}
	ops := endBypass(w)
	if freeze, _ := v1alpha1.FreezeOf(w.Labels, w.Annotations); freeze != "" {
		return append(ops, workload.Operation{Op: "add", Path: workload.Label(v1alpha1.SuspendLabel), Value: freeze})
	}
	if v1alpha1.SuspensionOf(w.Labels) != "" {
		ops = append(ops, workload.Operation{Op: "remove", Path: workload.Label(v1alpha1.SuspendLabel)})
	}
	return ops
}

// endBypass marks the bypass as that of a suspension that has ended, or removes its annotation if a person had
// removed it and the webhook wrote it again. It is called when the suspension ends, or when a hold records what the
// suspension replaced.
func endBypass(w *workload.Workload) []workload.Operation {
	b := v1alpha1.CurrentBypassOf(w.Labels, w.Annotations)
	if b == nil {
		return nil
	}
	path := workload.Annotation(v1alpha1.BypassAnnotation)
	b.Ended = true
	encoded, err := json.Marshal(b)
	if b.AnotherRepair || err != nil { // what was read as JSON can be written as JSON
		return []workload.Operation{{Op: "remove", Path: path}}
	}
	return []workload.Operation{{Op: "replace", Path: path, Value: string(encoded)}}
}

// processedOperations mark the workload as processed.
func processedOperations(w *workload.Workload, c *v1alpha1.ChangeWorkload) []workload.Operation {
	return append(sameReleaseTests(w, c),
		workload.Operation{Op: "add", Path: workload.Label(v1alpha1.DefenseStatusLabel), Value: v1alpha1.DefenseStatusProcessed})
}

// holdConsequence is the effect of a hold of the kind on deleted pods, on the traffic, or on another controller.
func holdConsequence(in Input) string {
	ref := in.ChangeWorkload.Spec.WorkloadRef
	switch {
	case in.Workload.KnativeService && (in.Workload.Hold.IsUntilJudged() || !in.Workload.Hold.IsWithoutSuspension()):
		return trafficConsequence(in)
	case workload.StatefulSet.Is(ref.APIVersion, ref.Kind) && holdsPartition(in):
		return "; pods that are deleted meanwhile are recreated with the former version"
	case workload.StatefulSet.Is(ref.APIVersion, ref.Kind), workload.DaemonSet.Is(ref.APIVersion, ref.Kind):
		return "; pods that are deleted meanwhile are recreated with the new version"
	case strings.HasPrefix(ref.APIVersion, "apps.kruise.io/"):
		return "; pods that are added or recreated meanwhile get the new version, unless your partition keeps the former one"
	case in.Workload.OfKruiseRollout:
		return "; OpenKruise Rollouts may continue the rollout: pause its Rollout (spec.strategy.paused)"
	case workload.Deployment.Is(ref.APIVersion, ref.Kind) && in.Workload.Surged:
		// The controller does so also while the Deployment is paused.
		return "; Kubernetes deletes the former pods when the new ones are available"
	default:
		return ""
	}
}

// holdsPartition reports whether the hold of a StatefulSet raises the partition. Without a record, because the hold
// begins now, this follows from the rollout.
func holdsPartition(in Input) bool {
	if heldByRelease(in) {
		return !workload.StatefulSet.HoldChangedNothing(in.Workload.Hold.Former)
	}
	return !in.Workload.complete()
}

// sameReleaseTests test that the workload is still at this release. Then it also has labels and
// annotations, without which an operation cannot add one.
func sameReleaseTests(w *workload.Workload, c *v1alpha1.ChangeWorkload) []workload.Operation {
	return append(workload.UnchangedOperations(w.UID, c.Release()),
		workload.Operation{Op: "test", Path: workload.Label(v1alpha1.VersionKey), Value: c.Spec.Reversion})
}
