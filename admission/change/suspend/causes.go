package suspend

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Types of status.details.causes of a denial: the reason and the remedies.
const (
	CauseSuspended metav1.CauseType = "Suspended"
	CauseRepair    metav1.CauseType = "Repair"
	CauseRollback  metav1.CauseType = "Rollback"
	CauseAsk       metav1.CauseType = "Ask"
)

// maxFailedPods is the maximum number of failed pods in a denial.
const maxFailedPods = 3

// Causes returns status.details.causes of a denial. releases are the cached
// ChangeWorkloads of the workload.
func Causes(w *workload.Workload, in Input, releases []*v1alpha1.ChangeWorkload) []metav1.StatusCause {
	failed, succeeded := newest(releases, isSuspended), newest(releases, hasSucceeded)
	if failed != nil && succeeded != nil && succeeded.Spec.Attempt > failed.Spec.Attempt {
		failed = nil
	}
	causes := []metav1.StatusCause{
		{Type: CauseSuspended, Field: "metadata.labels[" + v1alpha1.SuspendLabel + "]", Message: suspendedCause(w, failed)},
		{Type: CauseRepair, Message: repairCause(w, in)},
	}
	causes = append(causes, metav1.StatusCause{Type: CauseRollback, Message: rollbackCause(w, newest(releases, (*v1alpha1.ChangeWorkload).SucceededWithPods))})
	return append(causes, metav1.StatusCause{Type: CauseAsk, Message: overruleCause(w, failed) + fmt.Sprintf(
		"operators of Breakwater (namespace %s) can disable these denials for all workloads: OpsConfigInfo of type %s",
		v1alpha1.SystemNamespace, v1alpha1.ConfigBlocking)})
}

// overruleCause says who can overrule the fail; empty if the failed version is unknown or not current:
// after a repair or rollback was admitted, no verdict on it changes the workload. If no pod failed,
// then the order failed or was not accepted, or the check was lost. The cached object does not show which.
func overruleCause(w *workload.Workload, failed *v1alpha1.ChangeWorkload) string {
	namespace := w.Namespace
	switch {
	case !isCurrent(w, failed):
		return ""
	case len(failed.Status.DefenseCheckFailPods) > 0:
		return fmt.Sprintf("users who may patch changepods/status in namespace %s can overrule the verdict of the failed pods; ", namespace)
	default:
		return fmt.Sprintf("no pod failed; if the order as a whole failed or is unjudged, users who may patch changeworkloads/status "+
			"in namespace %s can pass it (status.orderResult); ", namespace)
	}
}

// isCurrent reports whether a release is the current one of the workload.
func isCurrent(w *workload.Workload, c *v1alpha1.ChangeWorkload) bool {
	live, known := v1alpha1.ReleaseOf(w.Annotations)
	return c != nil && known && c.Release() == live
}

func suspendedCause(w *workload.Workload, failed *v1alpha1.ChangeWorkload) string {
	text := v1alpha1.SuspensionText(w.Labels)
	if failed == nil {
		return text + "; the failed version is unknown: the label was set by hand, or the ChangeWorkload was deleted"
	}
	return fmt.Sprintf("%s: version %s (ChangeWorkload %s) %s%s",
		text, failed.Spec.Reversion, failed.Name, howFailed(failed), failedPods(failed))
}

// howFailed says how a version failed: only a judged pod proves that a check did.
func howFailed(c *v1alpha1.ChangeWorkload) string {
	if slices.ContainsFunc(c.Status.DefenseCheckFailPods, func(p v1alpha1.PodSummary) bool { return !p.Unjudged() }) {
		return "failed its check"
	}
	return "failed its check, or was not judged and counts as failed"
}

func failedPods(c *v1alpha1.ChangeWorkload) string {
	var pods []string
	for _, p := range c.Status.DefenseCheckFailPods {
		if len(pods) == maxFailedPods {
			pods = append(pods, "...")
			break
		}
		pods = append(pods, strings.TrimSuffix(p.Pod+" ("+p.Message+")", " ()"))
	}
	if len(pods) == 0 {
		return ""
	}
	return ": " + strings.Join(pods, ", ")
}

// repairCause says how a repair is released, and that it ends the suspension if the user tried to end it otherwise.
func repairCause(w *workload.Workload, in Input) string {
	ends, needs := "", ""
	if in.SuspensionOrHoldChanged && !in.TemplateChanged {
		ends = "the suspend label and the hold cannot be changed: the suspension ends with the success of a repair or rollback; "
	}
	if in.BypassNeedsVerb {
		needs = fmt.Sprintf("; this requires the verb %s on changeworkloads in namespace %s", v1alpha1.BypassVerb, w.Namespace)
	}
	if !in.RepairUsed {
		return ends + "apply the repaired " + w.Kind.Kind + " with the label " + v1alpha1.IgnoredSuspendLabel + `: "true"; it is admitted once per suspension` + needs
	}
	by := ""
	if b := v1alpha1.BypassOf(w.Annotations); b != nil {
		by = " for " + b.User
	}
	return ends + fmt.Sprintf("a repair of this suspension was already admitted%s; `kubectl annotate %s %s -n %s %s-` allows another%s",
		by, w.Kind.Argument(), w.Name, w.Namespace, v1alpha1.BypassAnnotation, needs)
}

// rollbackCause says how a version that succeeded is applied again. Without a ChangeWorkload of one, the saved templates
// decide, which are not cached.
func rollbackCause(w *workload.Workload, good *v1alpha1.ChangeWorkload) string {
	if good == nil {
		return fmt.Sprintf("if a version that succeeded is saved, `kubectl breakwater rollback %s/%s -n %s` applies its template, "+
			"which is admitted during the suspension", w.Kind.Argument(), w.Name, w.Namespace)
	}
	return fmt.Sprintf("apply the template of version %s, which succeeded (ChangeWorkload %s): a rollback to it is admitted during the suspension",
		good.Spec.Reversion, good.Name)
}

func isSuspended(c *v1alpha1.ChangeWorkload) bool { return c.Status.Phase == v1alpha1.ReleaseSuspend }

func hasSucceeded(c *v1alpha1.ChangeWorkload) bool { return c.Status.Phase == v1alpha1.ReleaseSuccess }

// newest returns the ChangeWorkload with the highest attempt of those that match, or nil.
func newest(releases []*v1alpha1.ChangeWorkload, match func(*v1alpha1.ChangeWorkload) bool) *v1alpha1.ChangeWorkload {
	var found *v1alpha1.ChangeWorkload
	for _, c := range releases {
		if match(c) && (found == nil || c.Spec.Attempt > found.Spec.Attempt) {
			found = c
		}
	}
	return found
}
