package podmeta

// The names of the field. Users type them, so they never change.
const (
	// SetAnnotation names the permission sets that pods need, separated by
	// commas: on a pod template, on a workload or on a namespace.
	SetAnnotation = "stke.io/permission-set"

	// Label says on a pod that it must not start without permission
	// (LabelRequired), and on a namespace that its pods are looked at
	// (LabelEnabled): an annotation cannot be selected by a webhook.
	Label         = "stke.io/permission"
	LabelRequired = "required"
	LabelEnabled  = "enabled"

	// Finalizer keeps a pod until its permissions were revoked.
	Finalizer = "stke.io/podpermission-protection"

	// ConditionAuthorized tells on the pod how far its permissions are.
	ConditionAuthorized = "stke.io/Authorized"
	// ConditionInjected is False on a pod that should have the init container
	// and does not.
	ConditionInjected = "stke.io/PermissionInjected"

	// TokenVolume holds the token by which the init container proves who it is.
	TokenVolume = "init-action-token"
	// TokenMountPath is where the container has it; the file is called "token".
	TokenMountPath = "/var/run/secrets/stke.io/init-action"

	// BreakerName is the ConfigMap with what failed, in the system namespace.
	BreakerName = "podpermission-breaker"
	// ConfigName is the ConfigMap with what people may tune there.
	ConfigName = "config-permission"
	// CentreAudience is that of the tokens by which Breakwater's processes are
	// known to the permission centre.
	CentreAudience = "permission-centre"
)

// One block of reasons feeds conditions, Events, metric labels and CloudEvents.
const (
	// ReasonNoIP: the pod has no address yet.
	ReasonWaitingForPodIP = "WaitingForPodIP"
	// ReasonNoFinalizer: the controller has not put its finalizer on it yet.
	ReasonWaitingForFinalizer = "WaitingForFinalizer"
	// ReasonRegistering: a step before permissions is under way.
	ReasonRegistering = "Registering"
	// ReasonRequested: the permission centre was asked.
	ReasonPermissionRequested = "PermissionRequested"
	// ReasonApplying: a provider was asked and has not decided.
	ReasonPermissionApplying = "PermissionApplying"
	// ReasonGranted: the app containers may start.
	ReasonPermissionGranted = "PermissionGranted"
	// ReasonDenied: a provider refused the parameters.
	ReasonPermissionDenied = "PermissionDenied"
	// ReasonFailed: a provider, the centre or the network failed.
	ReasonPermissionFailed = "PermissionFailed"
	// ReasonBreakerDenied: denied too often; open until somebody resets it.
	ReasonBreakerOpenDenied = "BreakerOpenDenied"
	// ReasonBreakerFailed: failed too often; one try per interval.
	ReasonBreakerOpenFailed = "BreakerOpenFailed"
	// ReasonBreakerClosed: the breaker was reset, or a try succeeded.
	ReasonBreakerClosed = "BreakerClosed"
	// ReasonUnreachable: the permission centre gives no answer.
	ReasonPermissionCentreUnreachable = "PermissionCentreUnreachable"
	// ReasonTerminating: the pod is going, so nothing is granted to it.
	ReasonPodTerminating = "PodTerminating"

	// ReasonRevoking, ReasonRevoked and ReasonLeaked: what became of what was granted.
	ReasonPermissionRevoking = "PermissionRevoking"
	ReasonPermissionRevoked  = "PermissionRevoked"
	ReasonPermissionLeaked   = "PermissionLeaked"
	// ReasonLeakedIP: the pod has an address that an old grant still holds for.
	ReasonLeakedPermissionOnPodIP = "LeakedPermissionOnPodIP"

	// ReasonNotInjected: the pod should have the init container and does not.
	ReasonPermissionNotInjected = "PermissionNotInjected"
	// ReasonNamespaceOff: sets are asked for in a namespace that is not enabled.
	ReasonNamespaceNotEnabled = "NamespaceNotEnabled"
)
