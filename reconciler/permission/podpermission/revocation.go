package podpermission

import (
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// minRetryPeriod is how long a new process retries a revocation whose deadline has
// already passed.
const minRetryPeriod = 30 * time.Second

// RevocationAction is the action for a pod's finalizer.
type RevocationAction string

// The actions.
const (
	// RemoveFinalizer: each application of the pod is Revoked or Leaked, so there is nothing to wait for.
	RemoveFinalizer RevocationAction = "RemoveFinalizer"
	// Retry: keep the finalizer and retry.
	Retry RevocationAction = "Retry"
	// GiveUp: the deadline passed; remove the finalizer and report the leak.
	GiveUp RevocationAction = "GiveUp"
)

// CentreState is the answer of the centre about a pod's applications.
type CentreState struct {
	// Err is the error if the call failed.
	Err error
	api.RevokeResult
	// Authorized: the permissions of the pod were granted, so the centre had
	// applications of it.
	Authorized bool
}

// lost reports whether the centre no longer has the applications of the pod, for
// instance because its store was lost.
func (s CentreState) lost() bool {
	return s.Err == nil && s.Authorized && len(s.Items) == 0 && len(s.OtherNames) == 0
}

// hasOrAwaitsGrantUnder returns another name of the cluster under which the pod has a grant, or
// waits for one. Empty if there is none.
func (s CentreState) hasOrAwaitsGrantUnder() string {
	for _, n := range s.OtherNames {
		if n.HasOrAwaitsGrant {
			return n.Cluster
		}
	}
	return ""
}

// Revocation is the action and the applications by their state.
type Revocation struct {
	Action RevocationAction
	// Revoked and Leaked are the applications in these states.
	Revoked, Leaked []api.Application
	// Unfinished are all other applications.
	Unfinished []api.Application
	// NoApplications: the centre has no applications of a pod whose permissions were granted.
	NoApplications bool
	// HasOrAwaitsGrantUnder is another name of the cluster under which the pod has a grant, or
	// waits for one. Empty if there is none.
	HasOrAwaitsGrantUnder string
}

// Deadline returns when the finalizer of a pod that has ended is removed in any
// case: timeout after its end, but not earlier than minRetryPeriod after this
// process first saw that it had ended.
func Deadline(ended, firstSeen time.Time, timeout time.Duration) time.Time {
	if ended.IsZero() || ended.After(firstSeen) {
		ended = firstSeen
	}
	deadline := ended.Add(timeout)
	if earliest := firstSeen.Add(min(minRetryPeriod, timeout)); deadline.Before(earliest) {
		deadline = earliest
	}
	return deadline
}

// DecideRevocation decides about the finalizer of a pod that has ended.
func DecideRevocation(centre CentreState, now, deadline time.Time) Revocation {
	r := Revocation{NoApplications: centre.lost(), HasOrAwaitsGrantUnder: centre.hasOrAwaitsGrantUnder()}
	for _, app := range centre.Items {
		switch app.State {
		case api.Revoked:
			r.Revoked = append(r.Revoked, app)
		case api.Leaked:
			r.Leaked = append(r.Leaked, app)
		default:
			r.Unfinished = append(r.Unfinished, app)
		}
	}
	switch {
	case centre.Err == nil && len(r.Unfinished) == 0 && r.HasOrAwaitsGrantUnder == "" && !r.NoApplications:
		r.Action = RemoveFinalizer
	case !now.Before(deadline):
		r.Action = GiveUp
	default:
		r.Action = Retry
	}
	return r
}
