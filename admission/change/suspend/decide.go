package suspend

import (
	"fmt"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Input is everything that a decision about an update depends on.
type Input struct {
	// Kind and Name identify the workload.
	Kind workload.Kind
	Name string
	// Suspended: the old object has the suspend label.
	Suspended bool
	// Blocking: OpsConfigInfo isBlockingUp is on and shadow is off.
	Blocking bool
	// ByController: our controller made the update.
	ByController bool
	// TemplateChanged: the update changes the pod template, so it is a release.
	TemplateChanged bool
	// NoTemplate: the workload has no pod template, or only a reference to one. Its release would not be judged, and
	// would not end the suspension.
	NoTemplate bool
	// SuspensionOrHoldChanged: the update ends or changes the suspension or the hold, resumes a stopped rollout
	// that is not that of the admitted repair or rollback, or changes only the version or attempt on the template of
	// a Knative Service.
	SuspensionOrHoldChanged bool
	// TrafficToFailedRevision: the update gives traffic to a Revision of a Knative Service that failed, or to the
	// latest one before a repair succeeded.
	TrafficToFailedRevision bool
	// RepairRequested: the update has the label ignored-suspend, and its value is not "false".
	RepairRequested bool
	// RepairUsed: a repair of this suspension was already admitted.
	RepairUsed bool
	// BypassRemoved: the update removes the bypass annotation of that repair, which
	// allows another one.
	BypassRemoved bool
	// BypassAnnotationChanged: the bypass annotation differs from KeptBypass, the value that the mutating
	// webhook would write for an update without a bypass.
	BypassAnnotationChanged bool
	// OwnerAddedOrChanged: the update adds or changes an owner. The garbage collector, whose deletions
	// are not checked, deletes the workload when its owners are deleted or do not exist.
	OwnerAddedOrChanged bool
	// Deletion: the request deletes the workload. The fields about updates are false then.
	Deletion bool
	// BypassNeedsVerb: OpsConfigInfo bypass is Authorized, so a repair, the removal of the
	// bypass annotation, a deletion or a change of owner requires the verb bypass.
	BypassNeedsVerb bool
	// Succeeded: the version of the new template succeeded in this workload.
	Succeeded bool
	// HistoryUnknown: the lookup of Succeeded failed.
	HistoryUnknown bool
}

// Outcome is what is decided about an update or a deletion.
type Outcome string

// The outcomes.
const (
	// Admit: the workload is not suspended, or the update is allowed during a suspension.
	Admit Outcome = "Admit"
	// Repair: admitted once per suspension; the rollout resumes.
	Repair Outcome = "Repair"
	// Rollback: admitted; the rollout resumes.
	Rollback Outcome = "Rollback"
	// Deny: the update is denied because of the suspension.
	Deny Outcome = "Deny"
)

// Decision is an outcome with its reason.
type Decision struct {
	Outcome Outcome
	// Reason is one of the Reason constants; empty on Admit.
	Reason string
	// Message explains a denial; empty unless Deny.
	Message string
}

// Bypass reports whether the update is admitted although the workload is suspended.
func (d Decision) Bypass() bool { return d.Outcome == Repair || d.Outcome == Rollback }

// Decide returns the decision about an update.
//
// Rollback precedes Repair, so that a rollback does not use the repair. Our controller
// changes a template only to roll back.
func Decide(in Input) Decision {
	switch {
	case !in.Suspended:
		return Decision{Outcome: Admit}
	case in.ByController && !in.TemplateChanged:
		return Decision{Outcome: Admit}
	case in.TemplateChanged && in.NoTemplate && in.Blocking:
		return deny(in, "its release would not be judged: "+workload.WriteTemplate)
	case in.TemplateChanged && (in.Succeeded || in.ByController):
		return Decision{Outcome: Rollback, Reason: v1alpha1.ReasonRollbackAdmitted}
	case in.TemplateChanged && in.RepairRequested && (!in.RepairUsed || !in.Blocking):
		return Decision{Outcome: Repair, Reason: v1alpha1.ReasonRepairAdmitted}
	case !in.Blocking:
		return Decision{Outcome: Admit}
	case in.TemplateChanged && in.RepairRequested:
		return deny(in, "a repair of this suspension was already admitted; "+
			"remove the annotation "+v1alpha1.BypassAnnotation+" to allow another")
	case in.TemplateChanged && in.HistoryUnknown:
		return deny(in, "Breakwater could not find out whether this version succeeded before: try again")
	case in.TemplateChanged, in.SuspensionOrHoldChanged:
		return deny(in, "")
	case in.TrafficToFailedRevision:
		return deny(in, "spec.traffic sends requests to a Revision that failed its check, or to the latest one before a repair succeeded; "+
			"name another Revision; the success of a repair or a rollback restores the traffic")
	default:
		return Decision{Outcome: Admit}
	}
}

// Confirm returns the decision of the validating webhook, which denies a bypass without
// its annotation, and another change of the annotation. The mutating webhook writes the annotation and
// resumes the rollout. If that webhook fails, the API server continues without it (failurePolicy). Without
// Confirm, the bypass would then be admitted, and its rollout would stay paused; or the record of what the
// suspension replaced would be lost.
func Confirm(d Decision, in Input, recorded bool) Decision {
	unrecorded := d.Bypass() && !recorded || d.Outcome == Admit && in.BypassAnnotationChanged
	if !unrecorded || in.ByController || !in.Blocking {
		return d
	}
	return deny(in, "the webhook "+MutatingWebhook(in.Kind)+" did not record this change, because it did not answer or failed: try again")
}

// NeedsAuthorization reports whether the decision requires that the user may bypass:
// a repair, the removal of a bypass annotation, which allows another repair, a deletion, and an
// owner, with which the garbage collector would delete the workload.
func NeedsAuthorization(d Decision, in Input) bool {
	if !in.BypassNeedsVerb || !in.Blocking || !in.Suspended || in.ByController {
		return false
	}
	return d.Outcome == Repair || d.Outcome != Deny && in.OwnerAddedOrChanged ||
		d.Outcome == Admit && (in.BypassRemoved || in.Deletion)
}

// Authorization is the result of an access review for a bypass.
type Authorization struct {
	Allowed bool
	// Reason is the reason of the API server; usually empty.
	Reason string
	// Err is the error of the review.
	Err error
}

// Authorize returns the decision if the user may bypass, else a denial. A failed
// review denies too.
func Authorize(d Decision, in Input, user, namespace string, review Authorization) Decision {
	if review.Allowed && review.Err == nil {
		return d
	}
	action := "a repair"
	switch {
	case in.Deletion:
		action = "a deletion"
	case in.OwnerAddedOrChanged:
		action = "an added or changed owner (metadata.ownerReferences)"
	case in.BypassRemoved && d.Outcome != Repair:
		action = "the removal of annotation " + v1alpha1.BypassAnnotation + " (it allows another repair)"
	}
	right := fmt.Sprintf("the verb %q on changeworkloads.%s in namespace %s",
		v1alpha1.BypassVerb, v1alpha1.GroupName, namespace)
	if review.Err != nil {
		return deny(in, fmt.Sprintf("%s requires %s; Breakwater could not check whether %s has this right: %v; try again", action, right, user, review.Err))
	}
	reason := ""
	if review.Reason != "" {
		reason = " (" + review.Reason + ")"
	}
	return deny(in, fmt.Sprintf("%s requires %s, which %s does not have%s; an administrator of the namespace can grant ClusterRole breakwater-bypass", action, right, user, reason))
}

// SuspendedMessage returns the literal text at the beginning of the reason and the
// message of a denial. Scripts of AlterShield Operator users match it.
func SuspendedMessage(kind workload.Kind, name string) string {
	return fmt.Sprintf("%s %s is suspended", kind.LowerKind(), name)
}

func deny(in Input, more string) Decision {
	message := SuspendedMessage(in.Kind, in.Name)
	if more != "" {
		message += ": " + more
	}
	return Decision{Outcome: Deny, Reason: v1alpha1.ReasonReleaseDenied, Message: message}
}
