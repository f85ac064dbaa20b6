package rollback

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
)

// VersionState is a version of the workload with a ReplicaSet or ControllerRevision, and its
// pods. It may be the current version, or have no pods.
type VersionState struct {
	Version string
	// Number orders revisions: the latest is the highest.
	Number int64
	// Template is the pod template.
	Template json.RawMessage
	// Pods counts the pods that are neither terminating nor ended, nor on a node that is not Ready. Ready
	// counts those of them that are Ready.
	Pods, Ready int
}

// Candidates are the possible targets of a rollback.
type Candidates struct {
	// Current is the current version.
	Current string
	// Versions are the versions with a ReplicaSet or ControllerRevision. They are read only for
	// self-healing, and not for a Knative Service.
	Versions []VersionState
	// Saved are the versions that succeeded, newest first.
	Saved []savedtemplate.Saved
	// Failed reports whether the last check of a version failed.
	Failed func(version string) bool
	// CurrentHasReadyPod: a pod of the current version is Ready.
	CurrentHasReadyPod bool
}

// Target is the version that a rollback restores.
type Target struct {
	Version  string
	Template json.RawMessage
	// Proof is the reason for the choice, for people.
	Proof string
}

// Choose returns the target of a rollback. Without one, ok is false and why is
// the reason, for people.
func Choose(d Decision, c Candidates) (target Target, ok bool, why string) {
	if d.Kind == v1alpha1.RollbackSelfHealing {
		return c.proven()
	}
	if d.Version == "" {
		k, ok := savedtemplate.Newest(c.Saved, c.Current, c.Failed)
		if !ok {
			return Target{}, false, "no other version that succeeded is saved"
		}
		return succeeded(k), true, ""
	}
	k, ok := savedtemplate.Find(c.Saved, d.Version)
	switch {
	case d.Version == c.Current:
		return Target{}, false, "version " + d.Version + " is already the current one"
	case !ok:
		return Target{}, false, "version " + d.Version + " is not saved: it has not succeeded, or its template was deleted since (history-limit, a failed check)"
	}
	return succeeded(k), true, ""
}

func succeeded(k savedtemplate.Saved) Target {
	return Target{Version: k.Release.Version, Template: k.Template,
		Proof: fmt.Sprintf("it succeeded at attempt %d", k.Release.Attempt)}
}

// proven returns a version whose pods are all Ready now. Versions that
// succeeded come before versions that only run, newest first; a version that
// failed its check is never chosen.
//
// If no such version is left (a StatefulSet with one replica, a node of a
// DaemonSet, no surge), the newest version that succeeded is chosen, provided
// that no pod of the current version is Ready, so that nothing can get worse. A
// version that runs and is not Ready is never chosen, even if it succeeded
// before.
func (c Candidates) proven() (Target, bool, string) {
	versions := slices.Clone(c.Versions)
	slices.SortStableFunc(versions, func(a, b VersionState) int {
		_, savedA := savedtemplate.Find(c.Saved, a.Version)
		_, savedB := savedtemplate.Find(c.Saved, b.Version)
		switch {
		case savedA && !savedB:
			return -1
		case savedB && !savedA:
			return 1
		default:
			return cmp.Compare(b.Number, a.Number)
		}
	})
	otherHasPods := false
	for _, v := range versions {
		if v.Version == c.Current || v.Pods == 0 {
			continue
		}
		otherHasPods = true
		if v.Ready < v.Pods || c.Failed(v.Version) {
			continue
		}
		t := Target{Version: v.Version, Template: v.Template, Proof: fmt.Sprintf("its %d pods are Ready", v.Pods)}
		if k, ok := savedtemplate.Find(c.Saved, v.Version); ok {
			t.Template = k.Template
		}
		return t, true, ""
	}
	if otherHasPods {
		return Target{}, false, "each other version with pods failed its check or has pods that are not Ready"
	}
	if c.CurrentHasReadyPod {
		return Target{}, false, "no other version has pods, and some pods of this one are Ready"
	}
	k, ok := savedtemplate.Newest(c.Saved, c.Current, c.Failed)
	if !ok {
		return Target{}, false, "no other version has pods, and none that succeeded is saved"
	}
	return succeeded(k), true, ""
}
