package rollbackapi

import (
	"net/http"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Input is everything that the answer to a wish follows from.
type Input struct {
	Kind workload.Kind
	Name string
	// OptedIn: the namespace is guarded. Known: the workload carries its release.
	OptedIn, Known bool
	Release        v1alpha1.Release
	// Deleting: the workload is being deleted.
	Deleting bool
	// Paused: a Deployment's roll-out was stopped, and not by us.
	Paused bool
	// Kept are the versions that succeeded, the latest first; Failed those that
	// did not pass their check the last time.
	Kept   []savedtemplate.Saved
	Failed map[string]bool
	// Version is where to go back to; empty leaves it to us.
	Version string
	// Attempt is the one that the sender has seen; 0 when it does not say.
	Attempt int64
	// Pending is a wish that is not carried out yet, or nil.
	Pending *v1alpha1.RollbackRequest
}

// Decision is what becomes of a wish.
type Decision struct {
	// To is the version to go back to.
	To string
	// Recorded: the same was asked for already.
	Recorded bool
	// Problem is what stands in the way, or nil.
	Problem *problem
}

// Decide says what becomes of a wish to go back.
func Decide(in Input) Decision {
	word := in.Kind.LowerKind() + " " + in.Name
	switch {
	case in.Deleting:
		return conflict("%s is being deleted", word)
	case !in.OptedIn:
		return conflict("the namespace of %s is not guarded, so nothing is known of its versions: kubectl label namespace <namespace> %s=%s",
			word, v1alpha1.NamespaceLabel, v1alpha1.NamespaceEnabled)
	case !in.Known:
		return conflict("%s has no version yet: try again in some seconds", word)
	case in.Attempt != 0 && in.Attempt != in.Release.Attempt:
		return conflict("%s is at attempt %d (version %s), and the request is about attempt %d: look at it again, and send attempt %d or none",
			word, in.Release.Attempt, in.Release.Version, in.Attempt, in.Release.Attempt)
	case in.Paused:
		return conflict("%s is paused by hand, so nothing would roll: kubectl rollout resume %s/%s", word, in.Kind.LowerKind(), in.Name)
	}
	to, problem := in.target(word)
	if problem != nil {
		return Decision{Problem: problem}
	}
	if p := in.Pending; p != nil && p.Attempt == in.Release.Attempt {
		if p.Version == to {
			return Decision{To: to, Recorded: true}
		}
		return conflict("%s asked at %s to roll %s back to version %s: wait until that is done, and ask about attempt %d",
			p.User, p.Time.UTC().Format(time.RFC3339), word, p.Version, p.Attempt+1)
	}
	return Decision{To: to}
}

// target is where to go back to.
func (in Input) target(word string) (string, *problem) {
	if in.Version == "" {
		k, ok := savedtemplate.Newest(in.Kept, in.Release.Version, func(v string) bool { return in.Failed[v] })
		if !ok {
			return "", conflict("none of the %d versions that are kept of %s is another than the current one and good: release a repair, with label %s: \"true\" where it is suspended",
				len(in.Kept), word, v1alpha1.IgnoredSuspendLabel).Problem
		}
		return k.Release.Version, nil
	}
	_, kept := savedtemplate.Find(in.Kept, in.Version)
	switch {
	case in.Version == in.Release.Version:
		return "", conflict("%s is at version %s already, attempt %d", word, in.Version, in.Release.Attempt).Problem
	case !kept, in.Failed[in.Version]:
		var known []string
		for _, k := range in.Kept {
			if v := k.Release.Version; v != in.Release.Version && !in.Failed[v] {
				known = append(known, v)
			}
		}
		return "", conflict("version %s of %s is not known to be good; %d are: %s: name one of them, or none for the newest",
			in.Version, word, len(known), strings.Join(known, ", ")).Problem
	}
	return in.Version, nil
}

func conflict(format string, args ...any) Decision {
	return Decision{Problem: problemf(http.StatusConflict, format, args...)}
}
