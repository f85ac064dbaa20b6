package api

import "time"

// State is where an application, or one permission of it, stands.
//
//	Requested -> Applying -> Granted | Denied | Failed
//	Granted -> Revoking -> Revoked | Leaked
type State string

const (
	// Requested is stored and queued; no provider was called yet.
	Requested State = "Requested"
	// Applying is what a provider was asked for and has not decided.
	Applying State = "Applying"
	// Granted is when every permission was granted.
	Granted State = "Granted"
	// Denied is when the provider refused the parameters; asking again changes nothing.
	Denied State = "Denied"
	// Failed is when the provider or the network failed; asking again may help.
	Failed State = "Failed"
	// Revoking is while what was granted is being taken back.
	Revoking State = "Revoking"
	// Revoked is when nothing that was granted is left.
	Revoked State = "Revoked"
	// Leaked is when something that was granted could not be taken back. The centre
	// goes on trying where the provider can revoke.
	Leaked State = "Leaked"
)

// ApplicationRequest asks for a permission set for one pod: the body of
// POST /v1/applications. Cluster, PodUID, PodIPs and Set identify the
// application. Asking again while it is Requested, Applying or Granted answers
// with the same one (200); after Denied, Failed, Revoked or Leaked it begins a
// new attempt (202): whoever asks says that the pod lives and has these
// addresses, be it again. A new one answers 201. While something is being taken
// back the answer is 409: ask again when that is done.
type ApplicationRequest struct {
	Cluster   string   `json:"cluster"`
	Namespace string   `json:"namespace"`
	Pod       string   `json:"pod"`
	PodUID    string   `json:"podUID"`
	PodIPs    []string `json:"podIPs"`
	Node      string   `json:"node,omitempty"`
	// NodeIPs are the addresses of the pod's node, for node-scoped providers.
	NodeIPs        []string `json:"nodeIPs,omitempty"`
	HostNetwork    bool     `json:"hostNetwork,omitempty"`
	ServiceAccount string   `json:"serviceAccount,omitempty"`
	Set            string   `json:"set"`
}

// Application is one pod's request for one set, and what became of it.
type Application struct {
	ID string `json:"id"`
	ApplicationRequest
	State State `json:"state"`
	// Reason is one word for State, Message a sentence for a person; neither
	// holds a credential or a provider's raw answer.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Attempt counts from 1; a new attempt follows Denied, Failed, Revoked or Leaked.
	Attempt int `json:"attempt"`
	// Permissions are those of the set when it was asked for, in its order; those
	// of now in an attempt that follows Revoked.
	Permissions []ApplicationPermission `json:"permissions"`
	// Leaked are grants to the same addresses that other pods left behind:
	// whoever asks now holds them too.
	Leaked  []LeakedGrant `json:"leaked,omitempty"`
	Created time.Time     `json:"created"`
	Updated time.Time     `json:"updated"`
	Version int64         `json:"version"`
}

// LeakedGrant is a grant that could not be taken back from an address which
// another pod has now.
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
	// Owner is whom to ask.
	Owner   string `json:"owner"`
	State   State  `json:"state"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Calls counts the provider calls of this attempt.
	Calls int `json:"calls"`
	// NextTry is when the centre calls the provider again, if it will.
	NextTry *time.Time `json:"nextTry,omitempty"`
	Since   time.Time  `json:"since"`
}

// ApplicationList is a page of GET /v1/applications, which takes cluster,
// namespace, pod, podUID, ip, set, state, limit (1 to 500, 100 unless told)
// and continue.
type ApplicationList struct {
	Items    []Application `json:"items"`
	Continue string        `json:"continue,omitempty"`
}

// History is GET /v1/applications/{id}/history, oldest first.
type History struct {
	Items []HistoryEntry `json:"items"`
}

// HistoryEntry is one change of state of an application's permission, or of
// the application when Permission is empty.
type HistoryEntry struct {
	Time       time.Time `json:"time"`
	Permission string    `json:"permission,omitempty"`
	From       State     `json:"from,omitempty"`
	To         State     `json:"to"`
	Attempt    int       `json:"attempt"`
	Reason     string    `json:"reason,omitempty"`
	Message    string    `json:"message,omitempty"`
	// Who is the authenticated user whose request caused it; empty: the centre.
	Who string `json:"who,omitempty"`
}

// Other paths of applications:
//
//	GET  /v1/applications/{id}?wait=30s&version=7   answers when its version is above 7 or after 30 s (at most 60 s)
//	POST /v1/applications/{id}/revoke               202; idempotent; 200 when it is Revoked or Leaked already
//	POST /v1/applications/{id}/reset                a Denied or Failed one may be asked for again at once
//	POST /v1/applications/revoke                    RevokeRequest: every application of a pod
//
// A reset begins a new attempt at once (202 with the application; 200 while it
// is Requested, Applying or Granted; 409 when it is going). Revoking what was
// denied or never granted ends in Revoked too. What failed half-way may have
// been granted, so it is revoked like a grant.
//
// A set, permission or provider that does not exist answers 404 with an Error
// whose Field is "set".

// RevokeRequest revokes all applications of a pod: the body of
// POST /v1/applications/revoke, answered by an ApplicationList. KeepIPs, when
// set, spares applications for exactly these addresses (a new sandbox of the
// same pod keeps what was granted to its new addresses).
type RevokeRequest struct {
	Cluster string   `json:"cluster"`
	PodUID  string   `json:"podUID"`
	KeepIPs []string `json:"keepIPs,omitempty"`
	// LetGo: the pod did not wait any longer. What is not taken back by now is
	// Leaked until it is.
	LetGo bool `json:"letGo,omitempty"`
}
