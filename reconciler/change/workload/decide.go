package workload

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Input is everything that a decision about a workload follows from.
type Input struct {
	// OptedIn: the workload's namespace is guarded.
	OptedIn bool
	// Deleting: the workload has a deletionTimestamp.
	Deleting bool
	// Kind is the workload's.
	Kind workload.Kind
	// UID is the workload's.
	UID types.UID
	// Label is the value of the version label.
	Label string
	// Release is what the annotations say; Known is false when they are
	// missing or do not read.
	Release v1alpha1.Release
	Known   bool
	// Computed is the version of the template as it stands.
	Computed string
	// Carriers is how many revisions of the workload carry Label as their
	// version. No two of them have one template, so more than one means that
	// a template got past admission under the version of another.
	Carriers int
	// Named is the ChangeWorkload that has the name of this release, or nil.
	Named *v1alpha1.ChangeWorkload
	// Owned are all ChangeWorkloads of the workload, Named among them.
	Owned []*v1alpha1.ChangeWorkload
	Now   time.Time
	// Up is since when this process decides.
	Up time.Time
}

// closingTime is how long after the Success of a release the orders of those
// before it may take to be closed at the server: then their records go anyway.
const closingTime = 10 * time.Minute

// closingGrace is how long a process that has just begun gives them.
const closingGrace = time.Minute

// Touch says why the workload is to pass admission again.
type Touch string

// The reasons to touch; a bounded set, it is a metric label.
const (
	// TouchNone: what the webhook wrote is all there.
	TouchNone Touch = ""
	// TouchUnversioned: label or annotations are missing or malformed: the
	// object is older than the webhook or its namespace's opt-in.
	TouchUnversioned Touch = "unversioned"
	// TouchSkipped: the template changed while the webhook could not be asked.
	TouchSkipped Touch = "skipped"
)

// Decision is what is to be done, in the order of the fields.
type Decision struct {
	Touch Touch
	// Conflict: a ChangeWorkload of that name belongs to a workload of another
	// kind. It is never deleted, and none is created.
	Conflict bool
	// DeleteStale is the ChangeWorkload that has the name but is about another
	// attempt or an earlier workload of the name; nil when there is none.
	DeleteStale *v1alpha1.ChangeWorkload
	// Create: the release has no ChangeWorkload, or will have none in a moment.
	Create bool
	// DeleteHistory are ChangeWorkloads of earlier releases: this one succeeded.
	DeleteHistory []*v1alpha1.ChangeWorkload
	// Again is after how long those go whose order is not closed yet; 0 when
	// there are none. An order that is closed wakes us before.
	Again time.Duration
}

// Decide says what follows for a workload. It does not compare versions to
// find out whether a touch is due: when Kubernetes learns a new default, the
// computed version of every stored template changes though nobody released
// anything.
func Decide(in Input) Decision {
	if !in.OptedIn || in.Deleting {
		return Decision{}
	}
	if !in.Known || in.Label != in.Release.Version {
		return Decision{Touch: TouchUnversioned}
	}
	d := Decision{}
	if in.Computed != in.Label && in.Carriers > 1 {
		d.Touch = TouchSkipped
	}
	switch c := in.Named; {
	case c == nil:
		d.Create = true
	case !in.Kind.Is(c.Spec.WorkloadRef.APIVersion, c.Spec.WorkloadRef.Kind):
		d.Conflict = true
	case c.DeletionTimestamp != nil:
		// Its deletion will wake us.
	case c.Spec.WorkloadRef.UID != in.UID || c.Spec.Attempt != in.Release.Attempt:
		d.DeleteStale, d.Create = c, true
	case c.Status.Phase == v1alpha1.WorkloadSuccess:
		d.DeleteHistory, d.Again = history(in)
	}
	return d
}

// history are the workload's other ChangeWorkloads, but for those whose order
// the server still has open: they are kept until it is closed, or for again.
func history(in Input) (old []*v1alpha1.ChangeWorkload, again time.Duration) {
	end := in.Now.Add(closingTime)
	if c := in.Named.Status.GetCondition(apis.ConditionSucceeded); c != nil {
		end = c.LastTransitionTime.Inner.Add(closingTime)
	}
	left := resend.Grace(end, in.Up, in.Now, closingGrace).Sub(in.Now)
	for _, c := range in.Owned {
		switch {
		case c.UID == in.Named.UID || c.DeletionTimestamp != nil:
		case left > 0 && c.Status.Order.Opened() && !c.Status.Order.Closed():
			again = left
		default:
			old = append(old, c)
		}
	}
	return old, again
}
