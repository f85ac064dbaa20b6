// Package protocol is what the init container and the init-action-server share:
// names, environment variables, the one request and its answer, and exit codes.
// It imports the standard library only. Changes stay compatible: init containers
// of older versions run for as long as their pods.
package protocol

// Container is the name of the init container.
const ContainerName = "init-action-client"

// Audience is that of the token by which a pod proves who it is.
const TokenAudience = "init-action-server"

// The environment of the init container.
const (
	// EnvServer is the URL of the server.
	EnvServer = "INIT_ACTION_SERVER"
	// EnvSets names the permission sets, separated by commas.
	EnvSets = "INIT_ACTION_SETS"
	// EnvTokenFile is where the token is read, anew at each try: the kubelet
	// replaces it before it expires.
	EnvTokenFile = "INIT_ACTION_TOKEN_FILE"
	// EnvDeadline is how long a round lasts, as a Go duration. Default 10m.
	EnvDeadline = "INIT_ACTION_DEADLINE"
	// EnvRestartPolicy is that of the pod: with Never the container ends only
	// when granted or denied, because it would not be started again.
	EnvRestartPolicy = "INIT_ACTION_RESTART_POLICY"
)

// AuthorizePath is where the one POST goes.
const AuthorizePath = "/v1/authorize"

// Request is the body of the POST. Who asks is known by the token, and where
// from by the connection; neither is believed from here.
type Request struct {
	Sets []string `json:"sets"`
}

// State is how a round ended.
type State string

// The states.
const (
	// Granted: the app containers may start.
	Granted State = "Granted"
	// Denied: asking again changes nothing, unless somebody mends something.
	Denied State = "Denied"
	// Failed: asking again may help.
	Failed State = "Failed"
	// Waiting: nothing was decided; the server ends the call for reasons of its own.
	Waiting State = "Waiting"
)

// Answer is how the server ends a call: 200, then a line feed every few seconds
// for as long as it works on it, then this as JSON. Statuses of 400 and above
// have it as their body too.
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
	// ExitDeadline: nothing was decided within the round.
	ExitDeadline = 2
	// ExitUsage: the environment cannot be understood.
	ExitUsage = 64
)
