package version

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/change/suspend"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// maxRequest is longer than the API server works on one request.
const maxRequest = time.Minute

// stamp returns what the workload becomes.
func stamp(c admission.Change, release v1alpha1.Release, gate suspend.Decision, now clock.PassiveClock) (admission.Mutation, error) {
	m := admission.NewMutation(c.New)
	m.SetLabel(v1alpha1.VersionKey, release.Version)
	m.SetAnnotation(v1alpha1.VersionKey, release.Version)
	m.SetAnnotation(v1alpha1.AttemptAnnotation, strconv.FormatInt(release.Attempt, 10))
	switch {
	case c.Old == nil:
		forget(&m, c)
	case gate.Bypass():
		if err := bypass(&m, c, release, gate, now.Now()); err != nil {
			return admission.Mutation{}, err
		}
	default:
		restore(&m, c)
	}
	// On a refused repair it stays, for the validating webhook to see.
	if gate.Outcome != suspend.Deny {
		delete(m.Labels, v1alpha1.IgnoredSuspendLabel)
	}
	return m, nil
}

// forget takes away what a saved manifest tells about an earlier workload: a
// created one is a new release. A stop that was ours goes with its record.
//
// So does the suspension, which was ours if it was held or bypassed. A suspend
// label that comes alone is a person's, who may freeze what is new.
func forget(m *admission.Mutation, c admission.Change) {
	_, held := c.New.Annotations[v1alpha1.HoldAnnotation]
	_, bypassed := c.New.Annotations[v1alpha1.BypassAnnotation]
	if held || bypassed {
		delete(m.Labels, v1alpha1.SuspendLabel)
	}
	delete(m.Labels, v1alpha1.DefenseStatusLabel)
	delete(m.Annotations, v1alpha1.BypassAnnotation)
	resume(m, c, c.New.Annotations)
}

// bypass records who was admitted, and lets the roll-out go on. The suspension
// itself stays until this release is a Success, also where the update would
// have dropped the label (a `kubectl replace`, for instance).
func bypass(m *admission.Mutation, c admission.Change, to v1alpha1.Release, gate suspend.Decision, now time.Time) error {
	kind := v1alpha1.BypassRollback
	if gate.Outcome == suspend.Repair {
		kind = v1alpha1.BypassRepair
	}
	suspended := c.Old.Labels[v1alpha1.SuspendLabel]
	record, err := json.Marshal(v1alpha1.Bypass{
		Kind: kind, User: c.User.Username, Suspend: suspended, Attempt: to.Attempt, Time: admitted(c, now),
		Freeze: freeze(c.Old.Annotations),
	})
	if err != nil {
		return fmt.Errorf("record the bypass: %w", err)
	}
	m.SetAnnotation(v1alpha1.BypassAnnotation, string(record))
	m.SetLabel(v1alpha1.SuspendLabel, suspended)
	resume(m, c, c.Old.Annotations)
	return nil
}

// freeze is what somebody had suspended the workload with before its check
// failed. The record of the hold goes, and with it who knows.
func freeze(annotations map[string]string) string {
	if hold := v1alpha1.HoldOf(annotations); hold != nil {
		return hold.Freeze
	}
	return ""
}

// admitted is when the update was admitted: now, or what we said before where
// the API server asks again. A person may not say when it was.
func admitted(c admission.Change, now time.Time) metav1.Time {
	if said := suspend.RecordedBypass(c); said != nil && now.Sub(said.Time.Time).Abs() <= maxRequest {
		return said.Time
	}
	return metav1.NewTime(now.UTC().Truncate(time.Second))
}

// resume ends a hold: the record of it goes, and the field that stops the
// roll-out is again what the record says, unless this change sets it itself.
// Of a record that does not read nothing is known: the field goes.
func resume(m *admission.Mutation, c admission.Change, recorded map[string]string) {
	_, held := recorded[v1alpha1.HoldAnnotation]
	delete(m.Annotations, v1alpha1.HoldAnnotation)
	if !held {
		return
	}
	m.Hold = c.New.Resume(ptr.Deref(v1alpha1.HoldOf(recorded), v1alpha1.Hold{}).Former)
}

// restore undoes what only we may write. The record of a bypass may be taken
// away, which allows another repair, but not be made. A record of a hold that
// was not there comes from a revision: `kubectl rollout undo` copies all of
// the annotations of a ReplicaSet to the Deployment.
func restore(m *admission.Mutation, c admission.Change) {
	if _, ok := m.Annotations[v1alpha1.BypassAnnotation]; ok {
		if was, ok := c.Old.Annotations[v1alpha1.BypassAnnotation]; ok {
			m.SetAnnotation(v1alpha1.BypassAnnotation, was)
		} else {
			delete(m.Annotations, v1alpha1.BypassAnnotation)
		}
	}
	if _, held := c.Old.Annotations[v1alpha1.HoldAnnotation]; !held && !c.ByController() {
		delete(m.Annotations, v1alpha1.HoldAnnotation)
	}
}
