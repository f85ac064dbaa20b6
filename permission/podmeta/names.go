package podmeta

// The names of the public interface. Users type them, so they never change.
const (
	// PermissionSetAnnotation lists the permission sets that pods need, separated by commas.
	// It is an annotation of a pod template, a workload or a namespace.
	PermissionSetAnnotation = "stke.io/permission-set"

	// Label marks namespaces and pods. It is a label because webhooks cannot select
	// by annotation.
	Label = "stke.io/permission"
	// LabelRequired on a pod: it must not start before its permissions are granted.
	LabelRequired = "required"
	// LabelEnabled on a namespace: the webhook processes its pods.
	LabelEnabled = "enabled"

	// Finalizer keeps a pod until its permissions are revoked.
	Finalizer = "stke.io/podpermission-protection"

	// ConditionAuthorized is True when all permissions of the pod are granted.
	ConditionAuthorized = "stke.io/Authorized"
	// ConditionInjected is False on a pod that lacks the required init container.
	ConditionInjected = "stke.io/PermissionInjected"

	// TokenVolume is the volume with the token that authenticates the init container.
	TokenVolume = "init-action-token"
	// TokenMountPath is the mount path of TokenVolume; the file is named "token".
	TokenMountPath = "/var/run/secrets/stke.io/init-action"

	// BreakerName is the ConfigMap of the breaker, in the system namespace.
	BreakerName = "podpermission-breaker"
	// ConfigName is the ConfigMap with the settings, in the system namespace.
	ConfigName = "config-permission"
	// BundleName is the ConfigMap with the certificates that clients of the centre and of
	// the init-action-server trust, in the system namespace.
	BundleName = "permission-ca"
)

// The reasons of conditions, Events, metric labels and CloudEvents.
const (
	// ReasonWaitingForPodIP: the pod has no IP address yet.
	ReasonWaitingForPodIP = "WaitingForPodIP"
	// ReasonWaitingForFinalizer: the permission controller has not added its
	// finalizer to the pod yet.
	ReasonWaitingForFinalizer = "WaitingForFinalizer"
	// ReasonRegistering: the init-action-server reads the applications of the pod, or registers the
	// pod before permissions are requested. No condition and no Event has it.
	ReasonRegistering = "Registering"
	// ReasonPermissionRequested: the permission centre accepted the request, or another call of the
	// pod sends it.
	ReasonPermissionRequested = "PermissionRequested"
	// ReasonPermissionApplying: a provider was called or some permissions are granted; not all are decided.
	ReasonPermissionApplying = "PermissionApplying"
	// ReasonPermissionGranted: the app containers may start.
	ReasonPermissionGranted = "PermissionGranted"
	// ReasonPermissionDenied: a provider rejected the parameters, or the centre rejected the
	// request: it is invalid, or the set does not exist or does not allow the pod.
	ReasonPermissionDenied = "PermissionDenied"
	// ReasonPermissionFailed: a provider, the centre or the network failed.
	ReasonPermissionFailed = "PermissionFailed"
	// ReasonBreakerOpenDenied: denied too often; open until it is reset.
	ReasonBreakerOpenDenied = "BreakerOpenDenied"
	// ReasonBreakerOpenFailed: failed too often; one attempt per interval.
	ReasonBreakerOpenFailed = "BreakerOpenFailed"
	// ReasonBreakerClosed: the breaker was reset, or all permissions of the pod are granted.
	ReasonBreakerClosed = "BreakerClosed"
	// ReasonPermissionCentreUnreachable: a call to the permission centre failed, and is
	// retried: there was no answer, or one that is not about the pod or its sets, such as 401.
	ReasonPermissionCentreUnreachable = "PermissionCentreUnreachable"
	// ReasonPodTerminating: the pod is being deleted or is completed (phase Succeeded or Failed), so
	// no permission is granted to it.
	ReasonPodTerminating = "PodTerminating"

	// ReasonPermissionRevoking: earlier grants of the pod are being revoked.
	ReasonPermissionRevoking = "PermissionRevoking"
	// ReasonPermissionRevoked: the pod needs no grant any more. Another pod of its node may keep one.
	ReasonPermissionRevoked = "PermissionRevoked"
	// ReasonFinalizerNotWritten: the finalizer of the pod could not be added or removed.
	ReasonFinalizerNotWritten = "FinalizerNotWritten"
	// ReasonPermissionLeaked: a grant of the pod could not be revoked.
	ReasonPermissionLeaked = "PermissionLeaked"
	// ReasonLeakedPermissionOnPodIP: the pod's IP address has a leaked grant, or is that of another
	// pod with one.
	ReasonLeakedPermissionOnPodIP = "LeakedPermissionOnPodIP"

	// ReasonPermissionNotInjected: the pod lacks the required init container.
	ReasonPermissionNotInjected = "PermissionNotInjected"
	// ReasonNamespaceNotEnabled: permission sets are requested in a namespace without
	// the label.
	ReasonNamespaceNotEnabled = "NamespaceNotEnabled"
)
