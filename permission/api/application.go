package api

import "time"

// State is the state of an application or of one of its permissions.
//
//	Requested -> Applying -> Granted | Denied | Failed
//	Granted -> Revoking -> Revoked | Leaked
type State string

// The states of an application.
const (
	// Requested: stored and queued; no permission is granted, and no provider was called in this attempt.
	Requested State = "Requested"
	// Applying: a provider was called or some permissions are granted; not all are decided.
	Applying State = "Applying"
	// Granted: every permission was granted.
	Granted State = "Granted"
	// Denied: the provider rejected the parameters; a retry with the same
	// parameters fails too.
	Denied State = "Denied"
	// Failed: the provider or the network failed; a retry may succeed.
	Failed State = "Failed"
	// Revoking: the grants are being revoked.
	Revoking State = "Revoking"
	// Revoked: the application needs no grant any more. The provider may still grant the same
	// permission, because another application of the pod or node needs it: see the reason.
	Revoked State = "Revoked"
	// Leaked: a grant could not be revoked. The centre retries if the provider can
	// revoke.
	Leaked State = "Leaked"
)

// States are all states of an application.
func States() []State {
	return []State{Requested, Applying, Granted, Denied, Failed, Revoking, Revoked, Leaked}
}

// ApplicationRequest requests a permission set for one pod: the body of
// POST /v1/applications. Cluster, PodUID, PodIPs and Set identify the
// application. The answer is 201 for a new application; 200 with the same
// application while it is Requested, Applying or Granted; 202 when a new attempt
// begins after Denied, Failed, Revoked or Leaked; and 409 while it is Revoking:
// retry when it is Revoked or Leaked. The answer is 409, too, while the provider is
// called for a leaked grant of the application, and after the pod has ended. A request
// states that the pod exists and has these addresses.
type ApplicationRequest struct {
	Cluster   string   `json:"cluster"`
	Namespace string   `json:"namespace"`
	Pod       string   `json:"pod"`
	PodUID    string   `json:"podUID"`
	PodIPs    []string `json:"podIPs"`
	Node      string   `json:"node,omitempty"`
	// NodeIPs are the addresses of the pod's node, for node-scoped providers; at most 256.
	NodeIPs        []string `json:"nodeIPs,omitempty"`
	HostNetwork    bool     `json:"hostNetwork,omitempty"`
	ServiceAccount string   `json:"serviceAccount,omitempty"`
	Set            string   `json:"set"`
}

// Application is the request of one pod for one permission set, and its result.
type Application struct {
	ID string `json:"id"`
	ApplicationRequest
	State State `json:"state"`
	// Reason is one word that explains State. It contains no credential and no raw
	// answer of a provider.
	Reason string `json:"reason,omitempty"`
	// Message is a sentence for people. It contains no credential and no raw answer
	// of a provider.
	Message string `json:"message,omitempty"`
	// Attempt counts from 1. A new attempt follows Denied, Failed, Revoked or Leaked.
	Attempt int `json:"attempt"`
	// Permissions are the permissions of the set at the time of the first request,
	// in the order of the set. An attempt after Revoked reads the set again.
	Permissions []ApplicationPermission `json:"permissions"`
	// Leaked are leaked grants of other pods to the same addresses. They also apply
	// to this pod.
	Leaked  []LeakedGrant `json:"leaked,omitempty"`
	Created time.Time     `json:"created"`
	Updated time.Time     `json:"updated"`
	Version int64         `json:"version"`
}

// LeakedGrant is a grant that could not be revoked from an address, which now
// belongs to another pod.
type LeakedGrant struct {
	IP          string    `json:"ip"`
	Application string    `json:"application"`
	Namespace   string    `json:"namespace"`
	Pod         string    `json:"pod"`
	Permission  string    `json:"permission"`
	Owner       string    `json:"owner"`
	Since       time.Time `json:"since"`
}

// ApplicationPermission is one permission of an application.
type ApplicationPermission struct {
	Permission string `json:"permission"`
	Provider   string `json:"provider"`
	// Owner is the group or user to contact about the permission.
	Owner   string `json:"owner"`
	State   State  `json:"state"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Calls is the number of provider calls of this attempt.
	Calls int `json:"calls"`
	// NextTry is when the centre calls the provider again, if it will.
	NextTry *time.Time `json:"nextTry,omitempty"`
	Since   time.Time  `json:"since"`
}

// ApplicationList is a page of GET /v1/applications. The query parameters are
// cluster, namespace, pod, podUID, ip, set, state, limit (1 to 500, default 100)
// and continue.
type ApplicationList struct {
	Items    []Application `json:"items"`
	Continue string        `json:"continue,omitempty"`
}

// History is the answer of GET /v1/applications/{id}/history, oldest entry first.
type History struct {
	Items []HistoryEntry `json:"items"`
}

// HistoryEntry is one state change of a permission of an application, or of the
// application when Permission is empty.
type HistoryEntry struct {
	Time       time.Time `json:"time"`
	Permission string    `json:"permission,omitempty"`
	From       State     `json:"from,omitempty"`
	To         State     `json:"to"`
	Attempt    int       `json:"attempt"`
	Reason     string    `json:"reason,omitempty"`
	Message    string    `json:"message,omitempty"`
	// Who is the authenticated user whose request caused the change; empty if the
	// centre caused it.
	Who string `json:"who,omitempty"`
}

// Other paths of applications:
//
//	GET  /v1/applications/{id}?wait=30s&version=7   answers when the version is above 7 or after 30 s (at most 60 s)
//	POST /v1/applications/{id}/revoke               202; idempotent; 200 if it is already Revoked or Leaked
//	POST /v1/applications/{id}/reset                begins a new attempt of a Denied or Failed application
//	POST /v1/applications/{id}/acknowledge          states that its leaked grants no longer exist: they are Revoked
//	POST /v1/applications/revoke                    RevokeRequest: revokes the applications of a pod, except those for KeepIPs
//
// A reset answers 202 with the application; 200 while it is Requested, Applying
// or Granted; 409 if it is Revoking, Revoked or Leaked: then only a request of the pod begins a new
// attempt. A denied or ungranted application that
// is revoked becomes Revoked too. A failed permission may have been granted, so
// it is revoked like a grant.
//
// If a set, permission or provider does not exist, the answer is 404 with an
// Error whose Field is "set".

// AcknowledgeResult is the answer of POST /v1/providers/{name}/acknowledge, which states
// that the leaked grants of a provider no longer exist.
type AcknowledgeResult struct {
	// Acknowledged is the number of grants that are Revoked now.
	Acknowledged int `json:"acknowledged"`
}

// RevokeRequest revokes the applications of a pod: the body of
// POST /v1/applications/revoke, answered by a RevokeResult.
type RevokeRequest struct {
	Cluster string `json:"cluster"`
	PodUID  string `json:"podUID"`
	// KeepIPs, if set, keeps the applications for exactly these addresses: those of
	// the current sandbox of the pod. Otherwise the pod has ended: requests for it are
	// answered 409 from then on.
	KeepIPs []string `json:"keepIPs,omitempty"`
	// LetGo is true when the pod was deleted before its permissions were revoked.
	// A grant that is being revoked is Leaked until it is revoked; one that a call is
	// requesting is revoked when the call ends.
	LetGo bool `json:"letGo,omitempty"`
}

// RevokeResult is the answer of POST /v1/applications/revoke.
type RevokeResult struct {
	// Items are the applications of the pod, except those that KeepIPs keeps. Each is Revoked, Leaked or
	// being revoked.
	Items []Application `json:"items"`
	// OtherNames are other names of the cluster under which the pod has applications, which this
	// request does not revoke: the cluster was renamed. Empty if KeepIPs is set.
	OtherNames []OtherName `json:"otherNames,omitempty"`
}

// OtherName is another name of the cluster of a pod.
type OtherName struct {
	Cluster string `json:"cluster"`
	// HasOrAwaitsGrant, `held` in JSON, is true while the pod has a grant under this name that is not
	// revoked, or waits for one.
	HasOrAwaitsGrant bool `json:"held"`
}
