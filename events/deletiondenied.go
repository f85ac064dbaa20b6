package events

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/breakwater-dev/breakwater/internal/text"
)

// DenialPeriod is the length of a period. All denials by an object within one period
// share one event.
const DenialPeriod = time.Minute

// maxOperation limits Operation, in bytes.
const maxOperation = 32

// Denier references the object that denied a request: a PodUnavailableBudget, a
// PodDeletionFlowControl, or an object that is protected from cascading deletion.
type Denier struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace is empty if the object is cluster-scoped.
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}

func (d Denier) check(c *checker) {
	c.conforms("guard.apiVersion", d.APIVersion, validation.IsQualifiedName)
	c.conforms("guard.kind", d.Kind, validation.IsCIdentifier)
	if d.Namespace != "" {
		c.conforms("guard.namespace", d.Namespace, validation.IsDNS1123Label)
	}
	c.name("guard.name", d.Name)
	c.uid("guard.uid", d.UID)
}

// source returns the path of the object at the API server.
func (d Denier) source() string {
	gvr, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(d.APIVersion, d.Kind))
	if d.Namespace == "" {
		return clusterPath(gvr, d.Name)
	}
	return path(gvr, d.Namespace, d.Name)
}

// DeletionDenied is the data of TypeDeletionDenied: within the period, an object
// denied at least one request that would have deleted pods, made them unavailable, or
// deleted the object itself with others that depend on it. It describes the first denial of a replica; the metric
// breakwater_admission_requests_total counts all.
type DeletionDenied struct {
	DeniedBy Denier `json:"guard"`
	// PeriodUnix is the beginning of the period, in seconds; see DenialPeriod.
	PeriodUnix int64 `json:"slotUnix"`
	// Operation is the denied operation: DELETE, EVICT, UPDATE, RESIZE, RESTART.
	Operation string `json:"operation"`
	// Namespace and Object identify the target: a pod, a workload, a namespace.
	// Namespace is empty if the target is cluster-scoped.
	Namespace string `json:"namespace,omitempty"`
	Object    string `json:"object"`
	// User is the author's user name at the API server, truncated to 512 bytes.
	User string `json:"user"`
	// Reason is one of the Reason constants.
	Reason string `json:"reason"`
	// Message is the message of the denial, truncated to MaxText bytes.
	Message string `json:"message,omitempty"`
}

var _ Data = DeletionDenied{}

// Type implements Data.
func (DeletionDenied) Type() string { return TypeDeletionDenied }

// ID implements Data. All replicas send the same id within a period, so a storm of
// denials is one event.
func (d DeletionDenied) ID() string { return fmt.Sprintf("%s/%d/denied", d.DeniedBy.UID, d.PeriodUnix) }

// Source implements Data: the object that denied the request.
func (d DeletionDenied) Source() string { return d.DeniedBy.source() }

// Subject implements Data: the target of the denied operation.
func (d DeletionDenied) Subject() string { return d.Object }

// Validate implements Data.
func (d DeletionDenied) Validate() error {
	var c checker
	d.DeniedBy.check(&c)
	if d.PeriodUnix <= 0 || d.PeriodUnix%int64(DenialPeriod/time.Second) != 0 {
		c.invalid("slotUnix", d.PeriodUnix, "must be the beginning of a period")
	}
	c.required("operation", d.Operation, maxOperation)
	if d.Namespace != "" {
		c.namespace(d.Namespace)
	}
	c.name("object", d.Object)
	c.required("user", d.User, maxUser)
	c.required("reason", d.Reason, maxReason)
	c.optional("message", d.Message, MaxText)
	return c.err()
}

func (d DeletionDenied) truncated(limit int) Data {
	d.Message = text.Truncate(d.Message, limit)
	d.User = text.Truncate(d.User, maxUser)
	return d
}
