package rollbackapi

import (
	"net/http"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Input has everything that a decision depends on.
type Input struct {
	Kind workload.Kind
	Name string
	// OptedIn means that the namespace is opted in, Known that the workload has the
	// annotations of its release.
	OptedIn, Known bool
	Release        v1alpha1.Release
	// Deleting means that the workload is terminating.
	Deleting bool
	// Paused means that a Deployment is paused, and not by Breakwater. Suspended means that the workload is suspended, so
	// it can only be resumed after the rollback.
	Paused, Suspended bool
	// Succeeded are the versions that succeeded, newest first. Failed are the versions
	// whose last check failed.
	Succeeded []savedtemplate.Saved
	Failed    map[string]bool
	// Version is the requested version; empty selects the newest good one.
	Version string
	// Attempt is the attempt that the user expects, or 0.
	Attempt int64
	// Pending is a recorded request that is not executed yet, or nil.
	Pending *v1alpha1.RollbackRequest
}

// Decision is the decision about a rollback request.
type Decision struct {
	// To is the version to roll back to.
	To string
	// Recorded means that the same request is recorded already.
	Recorded bool
	// Problem is the reason for a rejection, or nil.
	Problem *problem
}

// resumeCommand resumes a paused Deployment.
func resumeCommand(in Input) string {
	return "kubectl rollout resume " + in.Kind.LowerKind() + "/" + in.Name
}

// Decide decides about a rollback request.
func Decide(in Input) Decision {
	subject := in.Kind.LowerKind() + " " + in.Name
	switch {
	case in.Deleting:
		return conflict("%s is terminating", subject)
	case !in.OptedIn:
		return conflict("the namespace of %s is not opted in, so no versions are saved: kubectl label namespace <namespace> %s=%s --overwrite",
			subject, v1alpha1.NamespaceLabel, v1alpha1.NamespaceEnabled)
	case !in.Known:
		return conflict("%s has no version yet: try again in some seconds", subject)
	case in.Attempt != 0 && in.Attempt != in.Release.Attempt:
		return conflict("%s is at attempt %d (version %s), but the request is for attempt %d: check the workload, and send attempt %d or none",
			subject, in.Release.Attempt, in.Release.Version, in.Attempt, in.Release.Attempt)
	case in.Paused && !in.Suspended:
		return conflict("%s is paused, so it would not roll back: %s", subject, resumeCommand(in))
	}
	to, problem := in.target(subject)
	if problem != nil {
		return Decision{Problem: problem}
	}
	if p := in.Pending; p != nil && p.Attempt == in.Release.Attempt {
		if p.Version == to {
			return Decision{To: to, Recorded: true}
		}
		return conflict("%s requested at %s to roll %s back to version %s: wait until this is complete, and send attempt %d",
			p.User, p.Time.UTC().Format(time.RFC3339), subject, p.Version, in.Release.NextAttempt())
	}
	return Decision{To: to}
}

// target returns the version to roll back to.
func (in Input) target(subject string) (string, *problem) {
	if in.Version == "" {
		k, ok := savedtemplate.Newest(in.Succeeded, in.Release.Version, func(v string) bool { return in.Failed[v] })
		if !ok {
			return "", conflict("none of the %d saved versions of %s is good and differs from the current one: release a repair, with label %s: \"true\" if it is suspended",
				len(in.Succeeded), subject, v1alpha1.IgnoredSuspendLabel).Problem
		}
		return k.Release.Version, nil
	}
	_, succeeded := savedtemplate.Find(in.Succeeded, in.Version)
	switch {
	case in.Version == in.Release.Version:
		return "", conflict("%s already has version %s, attempt %d", subject, in.Version, in.Release.Attempt).Problem
	case !succeeded, in.Failed[in.Version]:
		var known []string
		for _, k := range in.Succeeded {
			if v := k.Release.Version; v != in.Release.Version && !in.Failed[v] {
				known = append(known, v)
			}
		}
		return "", conflict("version %s of %s is not known to be good (good versions: [%s]): send one of them, or none for the newest",
			in.Version, subject, strings.Join(known, ", ")).Problem
	}
	return in.Version, nil
}

func conflict(format string, args ...any) Decision {
	return Decision{Problem: problemf(http.StatusConflict, format, args...)}
}
