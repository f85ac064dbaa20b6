package diagnosis

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

// ReasonNotReported is the reason of a pod that needs permissions while init-action-server has
// not written its condition.
const ReasonNotReported = "NotReported"

// ExplainPod explains what a pod waits for before its containers start.
func ExplainPod(p *corev1.Pod) Explanation {
	e := Explanation{Subject: "pod/" + p.Name, State: StateNotWaiting, Reason: "NoPermissionNeeded", Why: []string{"the pod waits for no permission"}}
	if c := podmeta.Condition(p, podmeta.ConditionInjected); c != nil && c.Status == corev1.ConditionFalse {
		e.State, e.Reason, e.Why = StateFailed, c.Reason, []string{c.Message}
		if c.Reason == podmeta.ReasonNamespaceNotEnabled {
			e.WaysOut = []WayOut{{"enable the namespace first: without its label a new pod gets no init container either",
				fmt.Sprintf("kubectl label namespace %s %s=%s --overwrite", p.Namespace, podmeta.Label, podmeta.LabelEnabled)}}
		}
		e.WaysOut = append(e.WaysOut, WayOut{"delete the pod: its controller creates it again, with the init container; a pod without a controller must be created again by hand", fmt.Sprintf("kubectl delete pod %s -n %s", p.Name, p.Namespace)})
		return e
	}
	if c := podmeta.Condition(p, podmeta.ConditionAuthorized); c != nil {
		e.Reason, e.Why = c.Reason, []string{c.Message}
		switch {
		case c.Status == corev1.ConditionTrue:
		case c.Reason == podmeta.ReasonBreakerOpenDenied, c.Reason == podmeta.ReasonPermissionDenied:
			e.State = StateFailed
			e.WaysOut = []WayOut{{"have the permission corrected, then reset the breaker of the pod (docs/permission/application-team.md)", ""}}
		case c.Reason == podmeta.ReasonBreakerOpenFailed:
			e.State = StateRunning
			e.WaysOut = []WayOut{{"wait: Breakwater retries", ""}, {"reset the breaker of the pod for an attempt at once (docs/permission/application-team.md)", ""}}
		default:
			e.State = StateRunning
		}
	} else if waitsWithoutCondition(p) {
		e.State, e.Reason = StateRunning, ReasonNotReported
		e.Why = []string{fmt.Sprintf("the pod needs permissions, and init-action-server has not written its condition %s yet: its init container has not started, or init-action-server has not accepted its request", podmeta.ConditionAuthorized)}
		if w := imageNotPulled(p); w != nil {
			e.Why = []string{"the image of its init container cannot be pulled: " + w.Reason + ": " + w.Message}
			e.WaysOut = waysToImage(p, w.Reason)
		} else if c := podmeta.InitContainer(p); c != nil {
			e.WaysOut = []WayOut{{"read the log of its init container", fmt.Sprintf("kubectl logs %s -n %s -c %s", p.Name, p.Namespace, c.Name)}}
		}
	}
	e.WaysOut = append(e.WaysOut, WayOut{"see whether a budget would deny its eviction", fmt.Sprintf("kubectl breakwater simulate evict %s -n %s", p.Name, p.Namespace)})
	e.addDeletion(p.Labels, p.Namespace)
	return e
}

// addDeletion adds the way to learn whether a label denies the deletion of the object.
func (e *Explanation) addDeletion(labels map[string]string, namespace string) {
	if labels[v1alpha1.DisableCascadingDeletionLabel] != "" || labels[v1alpha1.DeleteProtectionLabel] != "" {
		e.WaysOut = append(e.WaysOut, WayOut{"see whether a label would deny the deletion", Command("simulate delete", e.Subject, namespace)})
	}
}

// The reasons of the kubelet for a container without an image: notPulled if the registry refused it, and invalidImage if
// the image or its name is the cause.
var (
	notPulled    = []string{"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"}
	invalidImage = []string{"InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "SignatureValidationFailed"}
)

// waysToImage returns what to do about an image that is not there.
func waysToImage(p *corev1.Pod, reason string) []WayOut {
	if !slices.Contains(invalidImage, reason) {
		return []WayOut{{"let the pods of the namespace pull the image (docs/install.md#private-registry)", ""}}
	}
	return []WayOut{
		{"have the image of the init container corrected: INIT_ACTION_CLIENT_IMAGE of Deployment permission-webhook", ""},
		{"delete the pod, so that it is created again with this image", fmt.Sprintf("kubectl delete pod %s -n %s", p.Name, p.Namespace)},
	}
}

// imageNotPulled returns why the image of the init container is not there; nil if it is, or is still being pulled.
func imageNotPulled(p *corev1.Pod) *corev1.ContainerStateWaiting {
	c := podmeta.InitContainer(p)
	for _, s := range p.Status.InitContainerStatuses {
		if w := s.State.Waiting; c != nil && s.Name == c.Name && w != nil && (slices.Contains(notPulled, w.Reason) || slices.Contains(invalidImage, w.Reason)) {
			return w
		}
	}
	return nil
}

// waitsWithoutCondition reports whether a pod without a condition waits for permissions: its app
// containers start only after they are granted.
func waitsWithoutCondition(p *corev1.Pod) bool {
	pending := p.Status.Phase == corev1.PodPending || p.Status.Phase == ""
	return p.Labels[podmeta.Label] == podmeta.LabelRequired && pending && p.DeletionTimestamp == nil
}

// ExplainBudget explains what a budget allows now.
func ExplainBudget(b *v1alpha1.PodUnavailableBudget) Explanation {
	e := Explanation{Subject: "podunavailablebudget/" + b.Name, State: StateAllowing, Reason: "Allowed"}
	s := b.Status
	e.Why = []string{fmt.Sprintf("%d of %d pods are available, and %d must be available: %d more may become unavailable",
		s.CurrentAvailable, s.TotalReplicas, s.DesiredAvailable, s.UnavailableAllowed)}
	charges := len(s.DeletedPods) + len(s.UnavailablePods)
	if charges > 0 {
		e.Why = append(e.Why, fmt.Sprintf("allowed requests in progress: %d", charges))
	}
	edit := fmt.Sprintf("kubectl edit pub %s -n %s", b.Name, b.Namespace)
	switch {
	case s.TotalReplicas == 0 && s.CurrentAvailable == 0 && s.GetCondition(v1alpha1.BudgetSynced).IsTrue():
		cause := s.GetCondition(v1alpha1.BudgetSynced).Message
		reason, do := v1alpha1.ReasonCoversNothing, "correct spec.targetRef or spec.selector"
		if cause == "" {
			reason, cause, do = "NoPods", "the workload of the budget has 0 replicas or no pods, or cannot be read", "if the workload has replicas, "+do
		}
		e.Reason, e.Why, e.WaysOut = reason, []string{cause}, []WayOut{{do, edit}}
	case s.UnavailableAllowed == 0 && !b.Spec.Shadow:
		e.State, e.Reason = StateDenying, "NoneAllowed"
		switch {
		case s.CurrentAvailable < s.TotalReplicas:
			e.WaysOut = []WayOut{{"wait until more pods are Ready", "kubectl get pods -n " + b.Namespace}}
		case charges > 0:
			e.WaysOut = []WayOut{{"wait until the requests in progress have taken effect", fmt.Sprintf("kubectl get pub %s -n %s -w", b.Name, b.Namespace)}}
		}
		e.WaysOut = append(e.WaysOut, WayOut{"change the limit", edit})
	}
	for _, t := range []apis.ConditionType{v1alpha1.BudgetSynced, v1alpha1.BudgetGuarding} {
		if c := s.GetCondition(t); !c.IsTrue() {
			e.State, e.Reason = StateFailed, "Not"+string(t)
			e.Why = append(e.Why, fmt.Sprintf("condition %s is not True: %s: %s", t, c.GetReason(), c.GetMessage()))
			e.WaysOut = append(e.WaysOut, WayOut{"check the installation", "kubectl breakwater doctor"})
		}
	}
	if b.Spec.Shadow {
		e.Why = append(e.Why, "the budget is in shadow mode: it reports and never denies")
	}
	return e
}

// ExplainFlowControl explains whether a flow control denies deletions now.
func ExplainFlowControl(f *v1alpha1.PodDeletionFlowControl) Explanation {
	e := Explanation{Subject: "poddeletionflowcontrol/" + f.Name, State: StateAllowing, Reason: v1alpha1.ReasonWithinLimit}
	open := f.Status.GetCondition(v1alpha1.FlowControlOpen)
	e.Why = []string{fmt.Sprintf("%d deletions in the longest window", f.Status.Deleted)}
	if open.IsTrue() {
		e.Reason = open.Reason
		e.Why = append(e.Why, open.Message)
	}
	if open.IsTrue() && !f.Spec.Shadow {
		e.State = StateDenying
		edit := WayOut{"raise the limit", "kubectl edit pdfc " + f.Name}
		switch {
		case open.Reason == v1alpha1.ReasonInvalidRule:
			edit.Do = "correct the rule"
			e.WaysOut = []WayOut{edit}
		case f.Status.RoomTime == nil: // no deletion is within the limit, so neither time nor a new count helps
			e.WaysOut = []WayOut{edit}
		default:
			e.Why = append(e.Why, "deletions are allowed again at "+f.Status.RoomTime.UTC().Format(time.RFC3339))
			e.WaysOut = []WayOut{{"wait until then", ""}, edit,
				{"stop counting earlier deletions", fmt.Sprintf("kubectl annotate pdfc %s --overwrite %s=$(date -u +%%FT%%TZ)", f.Name, v1alpha1.ClosedAnnotation)}}
		}
	}
	if f.Spec.Shadow {
		e.Why = append(e.Why, "the flow control is in shadow mode: it reports and never denies")
	}
	return e
}
