package rollback

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
)

// Revision is another version of the workload that has pods.
type Revision struct {
	Version string
	// Number orders revisions: the latest is the highest.
	Number int64
	// Template is the pod template.
	Template json.RawMessage
	// Pods are those that are not being deleted, Ready how many of them are.
	Pods, Ready int
}

// Options are where a workload can go back to.
type Options struct {
	// Current is the version that it is at.
	Current string
	// Running are the other versions that have pods.
	Running []Revision
	// Kept are the versions that succeeded, the latest first.
	Kept []savedtemplate.Kept
	// Failed says whether a version failed its check the last time.
	Failed func(version string) bool
	// Serving: a pod of the current version is Ready.
	Serving bool
}

// Target is where a workload goes back to.
type Target struct {
	Version  string
	Template json.RawMessage
	// Proof says why it is taken to be good, to a person.
	Proof string
}

// Choose returns where to go back to. False: nowhere; why says it to a person.
func Choose(c Cause, o Options) (target Target, ok bool, why string) {
	if c.Kind == v1alpha1.RollbackSelfHealing {
		return o.proven()
	}
	if c.Version == "" {
		k, ok := savedtemplate.Newest(o.Kept, o.Current, o.Failed)
		if !ok {
			return Target{}, false, "no other version is known to have succeeded"
		}
		return succeeded(k), true, ""
	}
	k, ok := savedtemplate.Find(o.Kept, c.Version)
	switch {
	case c.Version == o.Current:
		return Target{}, false, "the workload is at version " + c.Version + " already"
	case !ok:
		return Target{}, false, "version " + c.Version + " is not among those that are known to have succeeded"
	}
	return succeeded(k), true, ""
}

func succeeded(k savedtemplate.Kept) Target {
	return Target{Version: k.Release.Version, Template: k.Template,
		Proof: fmt.Sprintf("it succeeded at attempt %d", k.Release.Attempt)}
}

// proven returns a version that is good now: it has pods and all of them are
// Ready. What succeeded comes before what only runs, the latest first; what
// failed its check is no way out.
//
// Where no such pod is left (one replica of a StatefulSet, a node of a DaemonSet, no
// surge) there is nothing to see, and the newest Success is taken, provided
// that no pod of the current version serves: nothing can get worse then. A version
// that runs and is not Ready is not taken, however good it once was.
func (o Options) proven() (Target, bool, string) {
	running := slices.Clone(o.Running)
	slices.SortStableFunc(running, func(a, b Revision) int {
		_, keptA := savedtemplate.Find(o.Kept, a.Version)
		_, keptB := savedtemplate.Find(o.Kept, b.Version)
		if keptA != keptB {
			return map[bool]int{true: -1, false: 1}[keptA]
		}
		return cmp.Compare(b.Number, a.Number)
	})
	seen := map[string]bool{}
	for _, r := range running {
		if r.Version == o.Current || r.Pods == 0 {
			continue
		}
		seen[r.Version] = true
		if r.Ready < r.Pods || o.Failed(r.Version) {
			continue
		}
		t := Target{Version: r.Version, Template: r.Template, Proof: fmt.Sprintf("its %d pods are Ready", r.Pods)}
		if k, ok := savedtemplate.Find(o.Kept, r.Version); ok {
			t.Template = k.Template
		}
		return t, true, ""
	}
	if len(seen) > 0 {
		return Target{}, false, "no pod of another version is Ready that did not fail its check"
	}
	if o.Serving {
		return Target{}, false, "no other version has pods, and some pods of this one serve"
	}
	k, ok := savedtemplate.Newest(o.Kept, o.Current, o.Failed)
	if !ok {
		return Target{}, false, "no other version has pods, and none is known to have succeeded"
	}
	return succeeded(k), true, ""
}
