package suspend

import (
	"fmt"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Input is everything that a decision about an update follows from.
type Input struct {
	// Kind and Name are the workload's.
	Kind workload.Kind
	Name string
	// Suspended: the workload had the suspend label before the update.
	Suspended bool
	// Blocking: refusing is switched on.
	Blocking bool
	// ByController: the update is our controller's.
	ByController bool
	// TemplateChanged: the update is a release.
	TemplateChanged bool
	// HoldChanged: the update would end or change the suspension or the hold
	// of the roll-out.
	HoldChanged bool
	// RepairRequested: the update says that it is the repair.
	RepairRequested bool
	// RepairUsed: a repair of this suspension was admitted before.
	RepairUsed bool
	// RecordRemoved: the update takes the record of that repair away, which
	// allows another.
	RecordRemoved bool
	// NeedsAuthorization: a repair needs the right to bypass.
	NeedsAuthorization bool
	// Succeeded: the new template's version was a Success of this workload.
	Succeeded bool
	// HistoryUnknown: whether it was could not be found out.
	HistoryUnknown bool
}

// Outcome is what becomes of an update.
type Outcome string

// The outcomes.
const (
	// Admit: the update changes nothing that is held, or nothing is held.
	Admit Outcome = "Admit"
	// Repair: admitted, once a suspension, and the roll-out resumes.
	Repair Outcome = "Repair"
	// Rollback: admitted, and the roll-out resumes.
	Rollback Outcome = "Rollback"
	// Deny: the suspension stands.
	Deny Outcome = "Deny"
)

// Decision is an outcome and what is said of it.
type Decision struct {
	Outcome Outcome
	// Reason is one of the Reason constants; empty on Admit.
	Reason string
	// Message is what a person is told; empty unless Refuse.
	Message string
}

// Bypass reports whether the update is admitted although the workload is suspended.
func (d Decision) Bypass() bool { return d.Outcome == Repair || d.Outcome == Rollback }

// Decide says what becomes of an update.
//
// A way back to a good version comes before the repair, so that it does not
// use the repair up. Our controller changes a template only to roll back.
func Decide(in Input) Decision {
	switch {
	case !in.Suspended:
		return Decision{Outcome: Admit}
	case in.ByController && !in.TemplateChanged:
		return Decision{Outcome: Admit}
	case in.TemplateChanged && (in.Succeeded || in.ByController):
		return Decision{Outcome: Rollback, Reason: v1alpha1.ReasonRollbackAdmitted}
	case in.TemplateChanged && in.RepairRequested && (!in.RepairUsed || !in.Blocking):
		return Decision{Outcome: Repair, Reason: v1alpha1.ReasonRepairAdmitted}
	case !in.Blocking:
		return Decision{Outcome: Admit}
	case in.TemplateChanged && in.RepairRequested:
		return refuse(in, "the one repair of this suspension was admitted already; "+
			"remove the annotation "+v1alpha1.BypassAnnotation+" to allow another")
	case in.TemplateChanged && in.HistoryUnknown:
		return refuse(in, "whether this is a version that succeeded could not be found out: try again")
	case in.TemplateChanged, in.HoldChanged:
		return refuse(in, "")
	default:
		return Decision{Outcome: Admit}
	}
}

// Confirm turns the decision into that of the validating webhook. It comes
// after the mutating one, which lets the roll-out resume and records who was
// admitted, and whose failure the API server ignores: a bypass without its
// record would be admitted, and stay paused, and nobody would know.
func Confirm(d Decision, in Input, recorded bool) Decision {
	if !d.Bypass() || recorded || in.ByController || !in.Blocking {
		return d
	}
	return refuse(in, "the webhook "+MutatingWebhook(in.Kind)+" did not answer: try again")
}

// NeedsAuthorization says whether the decision stands only where the author has the
// right to bypass. What allows a repair needs it like the repair.
func NeedsAuthorization(d Decision, in Input) bool {
	if !in.NeedsAuthorization || !in.Blocking || !in.Suspended || in.ByController {
		return false
	}
	return d.Outcome == Repair || d.Outcome == Admit && in.RecordRemoved
}

// Authorization is what is known of an author's right to bypass.
type Authorization struct {
	Allowed bool
	// Reason is what the API server says to it; mostly empty.
	Reason string
	// Err: it could not be found out.
	Err error
}

// Authorize turns a decision that needs the right into that which has it or
// not. What is not known is not granted: that is what strict means.
func Authorize(d Decision, in Input, user, namespace string, right Authorization) Decision {
	if right.Allowed && right.Err == nil {
		return d
	}
	asked := fmt.Sprintf("the verb %q on changeworkloads.%s in namespace %s",
		v1alpha1.BypassVerb, v1alpha1.GroupName, namespace)
	if right.Err != nil {
		return refuse(in, fmt.Sprintf("whether %s has %s, which a repair needs, could not be found out: %v; try again", user, asked, right.Err))
	}
	said := ""
	if right.Reason != "" {
		said = " (" + right.Reason + ")"
	}
	return refuse(in, fmt.Sprintf("a repair needs %s, which %s does not have%s; who administers the namespace can give it: ClusterRole breakwater-bypass", asked, user, said))
}

// SuspendedMessage are what a refusal says to the letter, in its reason and, first of
// all, in its message: scripts of the AlterShield Operator's users look for them.
func SuspendedMessage(kind workload.Kind, name string) string {
	return fmt.Sprintf("%s %s is suspended", kind.LowerKind(), name)
}

func refuse(in Input, more string) Decision {
	message := SuspendedMessage(in.Kind, in.Name)
	if more != "" {
		message += ": " + more
	}
	return Decision{Outcome: Deny, Reason: v1alpha1.ReasonReleaseDenied, Message: message}
}
