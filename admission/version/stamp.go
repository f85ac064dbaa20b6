package version

import (
	"encoding/json"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/suspend"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// stamp returns the Deployment as it is to be.
func stamp(c admission.Change, release v1alpha1.Release, gate suspend.Decision) (*appsv1.Deployment, error) {
	d := c.New.DeepCopy()
	set(&d.Labels, v1alpha1.VersionKey, release.Version)
	set(&d.Annotations, v1alpha1.VersionKey, release.Version)
	set(&d.Annotations, v1alpha1.AttemptAnnotation, strconv.FormatInt(release.Attempt, 10))
	switch {
	case c.Old == nil:
		forget(d)
	case gate.Bypass():
		if err := bypass(d, c, release, gate); err != nil {
			return nil, err
		}
	default:
		restore(d, c)
	}
	// On a refused repair it stays, for the validating webhook to see.
	if gate.Outcome != suspend.Refuse {
		delete(d.Labels, v1alpha1.IgnoredSuspendLabel)
	}
	return d, nil
}

// forget takes away what a saved manifest tells about an earlier Deployment: a
// created one is a new release. A pause that was ours goes with its record.
func forget(d *appsv1.Deployment) {
	delete(d.Labels, v1alpha1.SuspendLabel)
	delete(d.Labels, v1alpha1.DefenseStatusLabel)
	delete(d.Annotations, v1alpha1.BypassAnnotation)
	resume(d, d.Annotations)
}

// bypass records who was admitted, and lets the roll-out go on. The suspension
// itself stays until this release is a Success, also where the update would
// have dropped the label (a `kubectl replace`, for instance).
func bypass(d *appsv1.Deployment, c admission.Change, to v1alpha1.Release, gate suspend.Decision) error {
	kind := v1alpha1.BypassRollback
	if gate.Outcome == suspend.Repair {
		kind = v1alpha1.BypassRepair
	}
	suspended := c.Old.Labels[v1alpha1.SuspendLabel]
	record, err := json.Marshal(v1alpha1.Bypass{Kind: kind, User: c.User, Suspend: suspended, Attempt: to.Attempt})
	if err != nil {
		return fmt.Errorf("record the bypass: %w", err)
	}
	set(&d.Annotations, v1alpha1.BypassAnnotation, string(record))
	set(&d.Labels, v1alpha1.SuspendLabel, suspended)
	resume(d, c.Old.Annotations)
	return nil
}

// resume ends a hold: the record of it goes, and spec.paused is again what
// the record says. One that does not read was still written with a pause.
func resume(d *appsv1.Deployment, recorded map[string]string) {
	raw, held := recorded[v1alpha1.HoldAnnotation]
	delete(d.Annotations, v1alpha1.HoldAnnotation)
	if !held {
		return
	}
	var hold v1alpha1.Hold
	if err := json.Unmarshal([]byte(raw), &hold); err != nil {
		hold = v1alpha1.Hold{}
	}
	d.Spec.Paused = hold.Paused
}

// restore undoes what only we may write. The record of a bypass may be taken
// away, which allows another repair, but not be made. A record of a hold that
// was not there comes from a ReplicaSet: `kubectl rollout undo` copies all of
// its annotations to the Deployment.
func restore(d *appsv1.Deployment, c admission.Change) {
	if _, ok := d.Annotations[v1alpha1.BypassAnnotation]; ok {
		restoreKey(d, c.Old.Annotations, v1alpha1.BypassAnnotation)
	}
	if _, held := c.Old.Annotations[v1alpha1.HoldAnnotation]; !held && !c.ByController() {
		delete(d.Annotations, v1alpha1.HoldAnnotation)
	}
}

func restoreKey(d *appsv1.Deployment, before map[string]string, key string) {
	if was, ok := before[key]; ok {
		d.Annotations[key] = was
		return
	}
	delete(d.Annotations, key)
}

func set(m *map[string]string, key, value string) {
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[key] = value
}
