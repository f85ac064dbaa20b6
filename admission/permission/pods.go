package permission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/permission/requiredsets"
	"github.com/breakwater-dev/breakwater/permission/settings"
)

// PodWebhook is the name of the webhook for new pods.
const PodWebhook = "mpodpermission.kb.io"

// Decisions, as metric labels.
const (
	// DecisionInjected: the pod was patched.
	DecisionInjected = "Injected"
	// DecisionAlreadyInjected: the pod needs no patch.
	DecisionAlreadyInjected = "AlreadyInjected"
	// DecisionNoPermissionSet: no permission set is requested.
	DecisionNoPermissionSet = "NoPermissionSet"
	// DecisionInvalid: the annotation is invalid.
	DecisionInvalid = "Invalid"
	// DecisionHostNetwork: it is not known that a pod with hostNetwork may request its sets:
	// one is pod-scoped, does not exist or could not be checked.
	DecisionHostNetwork = "HostNetwork"
	// DecisionWindows: the init container does not run on Windows.
	DecisionWindows = "Windows"
	// DecisionUnknownSet: a set does not exist.
	DecisionUnknownSet = "UnknownSet"
	// DecisionUnchecked: a set could not be checked, because a call to the permission centre failed.
	DecisionUnchecked = "Unchecked"
)

// Pods injects the init container into new pods that need permissions.
type Pods struct {
	RequiredSets requiredsets.Resolver
	SetChecker   SetChecker
	Settings     func() settings.Settings
	// Image is the image of the init-action-client.
	Image string
	// LimitRanges has the LimitRanges of all namespaces.
	LimitRanges corev1listers.LimitRangeLister
	// Bundle returns the certificates that the init container trusts.
	Bundle func() string
}

var _ admission.Handler = Pods{}

// Admit implements admission.Handler.
func (h Pods) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) admission.Answer {
	ctx, cancel := admission.WithDeadline(ctx)
	defer cancel()
	p := &corev1.Pod{}
	if err := json.Unmarshal(req.Object.Raw, p); err != nil {
		return admission.Fail(fmt.Errorf("decode the pod: %w", err))
	}
	value, source, err := h.RequiredSets.Resolve(ctx, req.Namespace, p)
	if err != nil {
		return admission.Fail(err)
	}
	sets, err := podmeta.ParseSets(value)
	if err != nil {
		return deny(DecisionInvalid, fmt.Sprintf("annotation %s of the %s: %v", podmeta.PermissionSetAnnotation, source, err))
	}
	if len(sets) == 0 {
		return admission.Allow(DecisionNoPermissionSet)
	}
	if onWindows(&p.Spec) {
		return denyWindows(string(source))
	}
	if p.Spec.HostNetwork {
		if message := h.SetChecker.hostNetworkDenial(ctx, sets); message != "" {
			return deny(DecisionHostNetwork, message)
		}
	}
	s, bundle := h.Settings(), h.Bundle()
	if bundle == "" && s.InitActionServerInCluster() {
		return admission.Fail(fmt.Errorf("the init container could not verify the init-action-server: %w", podmeta.ErrNoBundle))
	}
	minimum, err := minimumOf(h.LimitRanges, req.Namespace)
	if err != nil {
		return admission.Fail(err)
	}
	ops := Injection{Sets: sets, Image: h.Image, Server: s.InitActionServerURL, Bundle: bundle, Deadline: s.InitContainerDeadline, Minimum: minimum}.Patch(p)
	if len(ops) == 0 {
		return admission.Allow(DecisionAlreadyInjected)
	}
	patch, err := json.Marshal(ops)
	if err != nil {
		return admission.Fail(fmt.Errorf("encode the patch: %w", err))
	}
	return admission.AllowWith(DecisionInjected, patch)
}

// onWindows reports whether pods run on Windows: their spec or their node selector says so.
func onWindows(s *corev1.PodSpec) bool {
	return s.OS != nil && s.OS.Name == corev1.Windows || s.NodeSelector[corev1.LabelOSStable] == string(corev1.Windows)
}

// denyWindows denies pods on Windows whose sets the annotation of the source, such as "pod", requests.
func denyWindows(source string) admission.Answer {
	return deny(DecisionWindows, fmt.Sprintf(
		"the pods run on Windows, and the init container that requests permissions runs only on Linux; annotation %s of the %s requests sets; to request none, give the pods an empty annotation",
		podmeta.PermissionSetAnnotation, source))
}

// hostNetworkDenial returns why a pod with hostNetwork may not request the sets; empty if
// it may.
func (c SetChecker) hostNetworkDenial(ctx context.Context, sets []string) string {
	f := c.Check(ctx, sets)
	const why = "the pod uses hostNetwork, so a grant to its address applies to every pod of the node; "
	switch {
	case f.Err != nil:
		return why + "whether the sets allow this could not be checked: " + f.Err.Error()
	case len(f.Unknown) > 0:
		return "there is no permission set " + strings.Join(f.Unknown, ", ") + " at the permission centre"
	case len(f.PodScoped) > 0:
		return why + "permission set " + strings.Join(f.PodScoped, ", ") + " is not node-scoped, ask its owner"
	}
	return ""
}

// deny answers 403 also for an invalid annotation: kubectl apply --force and force of Flux delete an object whose update
// is answered 409 or 422, and create it again.
func deny(decision, message string) admission.Answer {
	return admission.Deny(decision, metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message})
}
