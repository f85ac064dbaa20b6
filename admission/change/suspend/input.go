package suspend

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/knativetraffic"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// InputOf returns the Input that follows from the old and the new object. Blocking,
// BypassNeedsVerb, Succeeded and HistoryUnknown stay false.
func InputOf(c admission.Change) Input {
	if c.Old == nil {
		return Input{Kind: c.New.Kind, Name: c.New.Name}
	}
	repair, labelled := c.New.Labels[v1alpha1.IgnoredSuspendLabel]
	used, added := v1alpha1.CurrentBypassOf(c.Old.Labels, c.Old.Annotations).UsesRepair(), AddedBypass(c)
	return Input{
		Kind:                    c.Old.Kind,
		Name:                    c.Old.Name,
		Suspended:               v1alpha1.SuspensionOf(c.Old.Labels) != "",
		ByController:            c.ByController(),
		TemplateChanged:         c.TemplateChanged,
		NoTemplate:              !c.New.HasTemplate(),
		SuspensionOrHoldChanged: suspensionOrHoldChanged(c),
		TrafficToFailedRevision: givesTrafficToFailedRevision(c),
		// The mutating webhook has removed the label and written the annotation.
		RepairRequested:         labelled && repair != v1alpha1.NoRepair || added != nil && added.Kind == v1alpha1.BypassRepair,
		RepairUsed:              used,
		BypassRemoved:           used && !v1alpha1.CurrentBypassOf(c.New.Labels, c.New.Annotations).UsesRepair(),
		BypassAnnotationChanged: bypassAnnotationChanged(c),
		OwnerAddedOrChanged:     ownerAddedOrChanged(c.Old.OwnerReferences, c.New.OwnerReferences),
	}
}

// suspensionOrHoldChanged reports whether the update removes or changes the suspend label or the
// hold annotation, or resumes a stopped rollout, no matter who stopped it, unless the bypass runs. The same is
// true if it changes only the version or attempt on the template of a Knative Service.
func suspensionOrHoldChanged(c admission.Change) bool {
	return differs(c.Old.Labels, c.New.Labels, v1alpha1.SuspendLabel) ||
		differs(c.Old.Annotations, c.New.Annotations, v1alpha1.HoldAnnotation) ||
		!c.TemplateChanged && templateReleaseChanged(c) ||
		resumes(c.Old, c.New) && !runsBypass(c.Old)
}

// resumes reports whether an update resumes a stopped rollout. A StatefulSet that is changed from the largest
// partition to OnDelete is resumed, too: pods that are deleted are then recreated with the new version.
func resumes(before, after *workload.Workload) bool {
	return before.PausedOrHeld() && !after.PausedOrHeld() || before.OnDelete && !after.Stopped()
}

// runsBypass reports whether the release of a suspended workload is the admitted repair or rollback, and nothing
// holds it: it did not fail since. Only a person stops its rollout then, and the suspension ends with its success.
func runsBypass(w *workload.Workload) bool {
	b := v1alpha1.CurrentBypassOf(w.Labels, w.Annotations)
	release, known := v1alpha1.ReleaseOf(w.Annotations)
	_, held := w.Annotations[v1alpha1.HoldAnnotation]
	return b != nil && known && b.Attempt == release.Attempt && !held
}

// givesTrafficToFailedRevision reports whether the update gives a failed Revision of a Knative Service more
// traffic. Until the suspension ends, the latest Revision counts as failed, too: during a repair the latest
// Ready Revision is either the failed one, or that of the repair, which must get no traffic before its
// release succeeded. A hold that ends when the first batch passed has no failed Revision.
func givesTrafficToFailedRevision(c admission.Change) bool {
	held := v1alpha1.HeldTrafficOf(c.Old.Labels, c.Old.Annotations)
	if held == nil || v1alpha1.HoldOf(c.Old.Annotations).IsUntilJudged() {
		return false
	}
	failed := knativetraffic.Revisions{Names: held.Failed, Latest: true}
	return failed.Share(c.New.Traffic) > failed.Share(c.Old.Traffic)
}

// templateReleaseChanged reports whether the release on the template of a Knative Service changes,
// which only Breakwater's mutating webhook may do.
func templateReleaseChanged(c admission.Change) bool {
	version, attempt := c.Old.TemplateRelease()
	newVersion, newAttempt := c.New.TemplateRelease()
	return version != newVersion || attempt != newAttempt
}

// ownerAddedOrChanged reports whether an owner was added or changed. The garbage collector finds owners by
// these four fields.
func ownerAddedOrChanged(before, after []metav1.OwnerReference) bool {
	return slices.ContainsFunc(after, func(a metav1.OwnerReference) bool {
		return !slices.ContainsFunc(before, func(b metav1.OwnerReference) bool {
			return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID
		})
	})
}

func differs(before, after map[string]string, key string) bool {
	a, inBefore := before[key]
	b, inAfter := after[key]
	return a != b || inBefore != inAfter
}

// bypassAnnotationChanged reports whether the bypass annotation has another value than KeptBypass.
func bypassAnnotationChanged(c admission.Change) bool {
	is, has := c.New.Annotations[v1alpha1.BypassAnnotation]
	value, kept := KeptBypass(c)
	return is != value || has != kept
}

// KeptBypass returns the value of the bypass annotation after an update that adds no bypass, and false if
// there is none. A user may remove the annotation, which allows another repair, but may not write it. While
// the suspension lasts, the webhook writes a removed annotation again, with anotherRepair, because it is the only
// record of what the suspension replaced. An update that ends the suspension, or begins another one, sets ended:
// while OpsConfigInfo isBlockingUp is off, users may end it, too.
func KeptBypass(c admission.Change) (value string, kept bool) {
	was, recorded := c.Old.Annotations[v1alpha1.BypassAnnotation]
	is, kept := c.New.Annotations[v1alpha1.BypassAnnotation]
	ended := differs(c.Old.Labels, c.New.Labels, v1alpha1.SuspendLabel)
	current := v1alpha1.CurrentBypassOf(c.Old.Labels, c.Old.Annotations) != nil
	if b := v1alpha1.BypassOf(c.Old.Annotations); b != nil && !b.Ended && (current || ended) {
		b.Ended, b.AnotherRepair = ended, !ended
		// In a repeated call of the API server the update has the value already.
		if noted, err := json.Marshal(b); err == nil && (kept == ended || is == string(noted)) {
			return string(noted), true
		}
	}
	if !recorded || !kept {
		return "", false
	}
	return was, true
}

// AddedBypass returns the value of the bypass annotation if this update adds it: the
// annotation names the user, the suspension and the attempt of the update.
//
// A user who writes the annotation by hand requests a repair, as with the label, and
// the same rules apply.
func AddedBypass(c admission.Change) *v1alpha1.Bypass {
	if c.Old == nil || !differs(c.Old.Annotations, c.New.Annotations, v1alpha1.BypassAnnotation) {
		return nil
	}
	b := v1alpha1.BypassOf(c.New.Annotations)
	before, _ := c.OldRelease()
	if b == nil || b.User != c.User.Username || b.Suspend != c.Old.Labels[v1alpha1.SuspendLabel] || b.Attempt != before.NextAttempt() {
		return nil
	}
	return b
}
