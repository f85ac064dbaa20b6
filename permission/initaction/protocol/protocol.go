// Package protocol defines what the init container and the init-action-server
// share: names, environment variables, the request, its answer and exit codes. It
// imports only the standard library. Changes must be backward compatible, because
// pods keep the init container with which they were created.
package protocol

// ContainerName is the name of the init container.
const ContainerName = "init-action-client"

// TokenAudience is the audience of the tokens that authenticate pods and users.
const TokenAudience = "init-action-server"

// The environment variables of the init container.
const (
	// EnvServer is the URL of the server.
	EnvServer = "INIT_ACTION_SERVER"
	// EnvCA has the certificates (PEM) that the client trusts in addition to those of the
	// system.
	EnvCA = "INIT_ACTION_CA"
	// EnvSets lists the permission sets, separated by commas.
	EnvSets = "INIT_ACTION_SETS"
	// EnvTokenFile is the path of the token. The client reads it for each request,
	// because the kubelet rotates it.
	EnvTokenFile = "INIT_ACTION_TOKEN_FILE"
	// EnvDeadline is how long one round of requests lasts, as a Go duration. Default 10m. Then
	// the next round begins. (The container of an earlier version exits instead, unless variable
	// INIT_ACTION_RESTART_POLICY is Never.)
	EnvDeadline = "INIT_ACTION_DEADLINE"
)

// AuthorizePath is the path of the POST request.
const AuthorizePath = "/v1/authorize"

// Request is the body of the POST request. It does not name the pod: the server takes the pod
// from the token and its addresses from the API server, and rejects a connection from another
// address.
type Request struct {
	Sets []string `json:"sets"`
}

// State is the result of a request.
type State string

// The states.
const (
	// Granted: the app containers may start.
	Granted State = "Granted"
	// Denied: a retry fails too until somebody corrects the permission.
	Denied State = "Denied"
	// Failed: a retry may succeed.
	Failed State = "Failed"
	// Waiting: undecided; the server ended the call and the client has to retry.
	Waiting State = "Waiting"
)

// Answer is the JSON at the end of the response. The server sends status 200, a
// line feed every few seconds while it works, and then the Answer. It is also the
// body of responses with status 400 or above.
type Answer struct {
	State   State  `json:"state"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// The exit codes of the container.
const (
	// ExitGranted: everything was granted.
	ExitGranted = 0
	// ExitDenied: a permission was denied.
	ExitDenied = 1
	// ExitUndecided: the container was terminated before a decision. In earlier versions,
	// also: the deadline passed.
	ExitUndecided = 2
	// ExitUsage: an environment variable is invalid.
	ExitUsage = 64
)
