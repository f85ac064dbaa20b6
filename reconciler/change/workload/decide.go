package workload

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/eventrecorder"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Input is the input of Decide.
type Input struct {
	// OptedIn: the workload's namespace is opted in.
	OptedIn bool
	// Deleting: the workload has a deletionTimestamp.
	Deleting bool
	// OfKnativeService: the workload is the Deployment of a Knative Service, which is judged instead.
	OfKnativeService bool
	// NoTemplate: the template of the workload has no container, so the workload has none, or a reference to it.
	NoTemplate bool
	// Kind is the workload's.
	Kind workload.Kind
	// UID is the workload's.
	UID types.UID
	// Label is the value of the version label.
	Label string
	// Release is the release in the annotations; Known is false if they are
	// missing or malformed.
	Release v1alpha1.Release
	Known   bool
	// Computed is the version computed from the current template.
	Computed string
	// RevisionCount is how many revisions of the workload have Label as their
	// version, or are the ControllerRevision of the current template. Revisions differ
	// in their templates, so more than one means that the webhook missed a template.
	RevisionCount int
	// NewestRevision is when the newest ReplicaSet or ControllerRevision was created that has Label in its annotations.
	NewestRevision time.Time
	// StoppedBeforeReplicaSet: no ReplicaSet has the current template, because the rollout is paused or held. So
	// if Computed is not Label, the webhook missed the template: a new default of Kubernetes changes the template of
	// a ReplicaSet, too.
	StoppedBeforeReplicaSet bool
	// Named is the ChangeWorkload with the name of this release, or nil.
	Named *v1alpha1.ChangeWorkload
	// Owned are all ChangeWorkloads of the workload, including Named.
	Owned []*v1alpha1.ChangeWorkload
	// OfEarlierWorkloads are the ChangeWorkloads of earlier workloads of this kind and name, without Named.
	OfEarlierWorkloads []*v1alpha1.ChangeWorkload
	Now                time.Time
	// DecidingSince is when this process began to decide in the namespace, again after an opt-in, and after it led no bucket.
	DecidingSince time.Time
}

// closingTime is the time after a Success at which the ChangeWorkloads of earlier releases are
// deleted in any case. Before that, one is deleted when its order is closed and its CloudEvents
// are accepted.
const closingTime = 10 * time.Minute

// closingGrace is how long they wait if closingTime passed before this process started.
const closingGrace = time.Minute

// maxClosingWait is how long a release waits for its name while the order of an earlier
// attempt is closed.
const maxClosingWait = 5 * time.Second

// maxReplaced is how many releases that newer ones replaced before they ended are kept. Nothing needs them; people read
// them. Otherwise a workload whose releases never succeed would have more with each release.
const maxReplaced = 20

// Readmission is the reason to send a workload through admission again.
type Readmission string

// The reasons of a readmission; they are values of a metric label.
const (
	// ReadmissionNone: the webhook's label and annotations are complete.
	ReadmissionNone Readmission = ""
	// ReadmissionUnversioned: label or annotations are missing or malformed, because
	// the object predates the webhook or the opt-in of its namespace.
	ReadmissionUnversioned Readmission = "unversioned"
	// ReadmissionTemplateMissed: the template changed while the webhook was unavailable, or a saved manifest of an
	// earlier release replaced the object.
	ReadmissionTemplateMissed Readmission = "template-missed"
)

// Decision is the result of Decide. The readmission is applied first; if it changes the
// workload, the rest is left to the next reconciliation. With Conflict nothing else is
// done. Otherwise RemoveFinalizer follows, which also leaves the rest to the next
// reconciliation, then the deletions, and then Create.
type Decision struct {
	Readmission Readmission
	// ReportNoTemplate: an Event is recorded that the releases of the workload are not judged.
	ReportNoTemplate bool
	// Conflict: a workload of another kind owns a ChangeWorkload of this name.
	// It is never deleted, and none is created.
	Conflict bool
	// DeleteOfSameName is a ChangeWorkload with the name of this release, but of another
	// attempt, or of an earlier workload with the same name; nil if there is none.
	DeleteOfSameName *v1alpha1.ChangeWorkload
	// Create: the release has no ChangeWorkload, or only DeleteOfSameName.
	Create bool
	// DeleteOlder are ChangeWorkloads of earlier releases, to be deleted
	// because this one succeeded, or because there are more than maxReplaced.
	DeleteOlder []*v1alpha1.ChangeWorkload
	// DeleteOfEarlierWorkloads are ChangeWorkloads of workloads that do not exist any more. The garbage collector
	// deletes them, unless the workload was deleted with --cascade=orphan.
	DeleteOfEarlierWorkloads []*v1alpha1.ChangeWorkload
	// RemoveFinalizer is a deleted ChangeWorkload with this name whose finalizer is removed, although
	// its order is not closed: the release would not be judged meanwhile.
	RemoveFinalizer *v1alpha1.ChangeWorkload
	// RetryAfter is the time until the older ChangeWorkloads that are not settled are
	// deleted anyway, RemoveFinalizer is due, or the Event is repeated; 0 if there are none. When one of them is settled
	// earlier, its update causes a reconcile.
	RetryAfter time.Duration
}

// Decide decides what to do for a workload. A computed version that differs from the label alone is
// no reason for a readmission: a new default in Kubernetes changes the computed version of every
// stored template without a release.
func Decide(in Input) Decision {
	if !in.OptedIn || in.Deleting || in.OfKnativeService {
		return Decision{}
	}
	if in.NoTemplate {
		return Decision{ReportNoTemplate: true, RetryAfter: eventrecorder.RepeatAfter}
	}
	if !in.Known || in.Label != in.Release.Version {
		return Decision{Readmission: ReadmissionUnversioned}
	}
	if in.setBack() {
		return Decision{Readmission: ReadmissionTemplateMissed}
	}
	d := Decision{DeleteOfEarlierWorkloads: ofEarlierWorkloads(in)}
	if in.Computed != in.Label && (in.RevisionCount > 1 || in.StoppedBeforeReplicaSet || in.revisionAfterSuccess()) {
		d.Readmission = ReadmissionTemplateMissed
	}
	switch c := in.Named; {
	case c == nil:
		d.Create = true
	case !in.Kind.Is(c.Spec.WorkloadRef.APIVersion, c.Spec.WorkloadRef.Kind):
		d.Conflict = true
	case c.DeletionTimestamp != nil && slices.Contains(c.Finalizers, v1alpha1.OrderFinalizer):
		// The event of its removal reconciles again.
		if d.RetryAfter = c.DeletionTimestamp.Add(maxClosingWait).Sub(in.Now); d.RetryAfter <= 0 {
			d.RemoveFinalizer, d.RetryAfter = c, 0
		}
	case c.DeletionTimestamp != nil:
		// The event of its removal reconciles again.
	case c.Spec.WorkloadRef.UID != in.UID || c.Spec.Attempt != in.Release.Attempt:
		d.DeleteOfSameName, d.Create = c, true
	case c.Status.Phase == v1alpha1.ReleaseSuccess:
		d.DeleteOlder, d.RetryAfter = older(in)
	default:
		d.DeleteOlder = replacedOverLimit(in)
	}
	return d
}

// setBack reports whether the workload has had a newer release than that in its annotations: a saved manifest of an
// earlier release replaced the object while the webhook was unavailable. Attempts begin again at 1 after MaxAttempt.
func (in Input) setBack() bool {
	var newest int64
	for _, c := range in.Owned {
		newest = max(newest, c.Spec.Attempt)
	}
	return newest > in.Release.Attempt && newest < v1alpha1.MaxAttempt
}

// revisionAfterSuccess reports whether a revision has the release in its annotations, but was created after the release
// had succeeded: its template is another one, and that of the release was deleted (revisionHistoryLimit). A new default
// of Kubernetes creates none.
func (in Input) revisionAfterSuccess() bool {
	c := in.Named
	return c != nil && c.Spec.WorkloadRef.UID == in.UID && c.Spec.Attempt == in.Release.Attempt && c.SucceededBefore(in.NewestRevision)
}

// ofEarlierWorkloads returns the ChangeWorkloads of earlier workloads that are not deleted yet.
func ofEarlierWorkloads(in Input) (all []*v1alpha1.ChangeWorkload) {
	for _, c := range in.OfEarlierWorkloads {
		if c.DeletionTimestamp == nil {
			all = append(all, c)
		}
	}
	return all
}

// older returns the workload's other ChangeWorkloads, except those whose order is
// still to be closed or whose CloudEvents the Broker has not accepted: they are kept
// until then, at most for retryAfter.
func older(in Input) (old []*v1alpha1.ChangeWorkload, retryAfter time.Duration) {
	end := in.Now.Add(closingTime)
	if c := in.Named.Status.GetCondition(apis.ConditionSucceeded); c != nil {
		end = c.LastTransitionTime.Inner.Add(closingTime)
	}
	left := resend.ExtendDeadline(end, in.DecidingSince, in.Now, closingGrace).Sub(in.Now)
	for _, c := range in.Owned {
		switch {
		case c.UID == in.Named.UID || c.DeletionTimestamp != nil:
		case left > 0 && !settled(c):
			retryAfter = left
		default:
			old = append(old, c)
		}
	}
	return old, retryAfter
}

// replacedOverLimit returns the oldest of the workload's releases that newer ones replaced before they ended, if there
// are more than maxReplaced. Those that failed a check stay: no rollback returns to them. So does what has to be sent.
func replacedOverLimit(in Input) []*v1alpha1.ChangeWorkload {
	var replaced []*v1alpha1.ChangeWorkload
	for _, c := range in.Owned {
		ended := c.Status.Phase == v1alpha1.ReleaseFailed && !c.Status.TimedOut()
		if c.UID != in.Named.UID && c.DeletionTimestamp == nil && ended && !c.CountsAsFailed() && settled(c) {
			replaced = append(replaced, c)
		}
	}
	if len(replaced) <= maxReplaced {
		return nil
	}
	slices.SortFunc(replaced, func(a, b *v1alpha1.ChangeWorkload) int { return cmp.Compare(b.Spec.Attempt, a.Spec.Attempt) })
	return replaced[maxReplaced:]
}

// settled reports whether nothing remains to be sent for a release.
func settled(c *v1alpha1.ChangeWorkload) bool {
	closing := c.Status.Order.Opened() && !c.Status.Order.ClosingDone()
	return !closing && len(c.Status.Announcements) == 0
}
