package events

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/internal/text"
)

// PodBreakerVerb is a change of state of the breaker of a pod's permissions.
type PodBreakerVerb string

// The verbs.
const (
	// PodBreakerOpened: requests for the pod were denied or failed too often.
	PodBreakerOpened PodBreakerVerb = "opened"
	// PodBreakerClosed: a user reset the breaker, or a request succeeded.
	PodBreakerClosed PodBreakerVerb = "closed"
)

const breakerPrefix = "dev.breakwater.breaker."

// PodBreaker is the data of the breaker types.
type PodBreaker struct {
	// Verb is part of the event's type and not of the JSON.
	Verb      PodBreakerVerb `json:"-"`
	Namespace string         `json:"namespace"`
	Pod       string         `json:"pod"`
	PodUID    types.UID      `json:"podUid"`
	// AtUnix is the time of the last counted failure, in seconds. It
	// distinguishes one opening from the next.
	AtUnix int64 `json:"atUnix"`
	// Denied and Failed are the counts of denied and failed requests.
	Denied int64 `json:"denied,omitempty"`
	Failed int64 `json:"failed,omitempty"`
	// Reason is one of the Reason constants of permission/podmeta.
	Reason string `json:"reason,omitempty"`
	// User is the user who reset the breaker, truncated to 512 bytes.
	User string `json:"user,omitempty"`
	// Message is for people, truncated to MaxText bytes.
	Message string `json:"message,omitempty"`
}

var _ Data = PodBreaker{}

// Type implements Data.
func (d PodBreaker) Type() string { return breakerPrefix + string(d.Verb) + versionSuffix }

// ID implements Data.
func (d PodBreaker) ID() string { return fmt.Sprintf("%s/%d/%s", d.PodUID, d.AtUnix, d.Verb) }

// Source implements Data: the pod.
func (d PodBreaker) Source() string { return podPath(d.Namespace, d.Pod) }

// Subject implements Data: the pod.
func (d PodBreaker) Subject() string { return d.Pod }

// Validate implements Data.
func (d PodBreaker) Validate() error {
	var c checker
	if !slices.Contains(Types(), d.Type()) {
		c.invalid("verb", string(d.Verb), "unknown")
	}
	c.pod(d.Namespace, d.Pod, d.PodUID)
	if d.AtUnix <= 0 {
		c.invalid("atUnix", d.AtUnix, "must be positive")
	}
	for name, n := range map[string]int64{"denied": d.Denied, "failed": d.Failed} {
		if n < 0 {
			c.invalid(name, n, "must not be negative")
		}
	}
	c.optional("reason", d.Reason, maxReason)
	c.optional("user", d.User, maxUser)
	c.optional("message", d.Message, MaxText)
	return c.err()
}

func (d PodBreaker) truncated(limit int) Data {
	d.Message, d.User = text.Truncate(d.Message, limit), text.Truncate(d.User, maxUser)
	return d
}

// podPath returns a pod's path at the API server.
func podPath(namespace, name string) string {
	return path(schema.GroupVersionResource{Version: "v1", Resource: "pods"}, namespace, name)
}

func (c *checker) pod(namespace, name string, uid types.UID) {
	c.namespace(namespace)
	c.name("pod", name)
	c.uid("podUid", uid)
}
