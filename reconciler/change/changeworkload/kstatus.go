package changeworkload

import (
	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// kstatusConditions has the conditions of kstatus: the status of Ready, and which of Reconciling
// and Stalled is present; present is empty if neither is.
type kstatusConditions struct {
	ready   corev1.ConditionStatus
	present apis.ConditionType
	// reason and message are common to all of these conditions.
	reason, message string
}

// kstatusConditionsOf derives the conditions of kstatus from Succeeded and Held. A release that is
// held is stalled even if it has not failed: a person decides, unless a late verdict comes. The
// reason of a running release is constant: a different one would be a transition, which is
// written at once.
func kstatusConditionsOf(succeeded, held *apis.Condition) kstatusConditions {
	switch {
	case succeeded.IsTrue():
		return kstatusConditions{ready: corev1.ConditionTrue, reason: succeeded.Reason, message: succeeded.Message}
	case succeeded.IsFalse():
		return kstatusConditions{corev1.ConditionFalse, v1alpha1.ReleaseStalled, succeeded.Reason, succeeded.Message}
	case held.IsTrue():
		return kstatusConditions{corev1.ConditionFalse, v1alpha1.ReleaseStalled, held.Reason, held.Message}
	default:
		return kstatusConditions{corev1.ConditionUnknown, v1alpha1.ReleaseReconciling, v1alpha1.ReasonProgressing, ""}
	}
}

func markKstatus(next *v1alpha1.ChangeWorkload, m apis.ConditionManager) {
	s := kstatusConditionsOf(next.Status.GetCondition(apis.ConditionSucceeded), next.Status.GetCondition(v1alpha1.ReleaseHeld))
	setInfo(m, v1alpha1.ReleaseReady, s.ready, s.reason, s.message)
	for _, t := range []apis.ConditionType{v1alpha1.ReleaseReconciling, v1alpha1.ReleaseStalled} {
		if t == s.present {
			setInfo(m, t, corev1.ConditionTrue, s.reason, s.message)
		} else {
			_ = m.ClearCondition(t) // fails for terminal conditions only
		}
	}
}
