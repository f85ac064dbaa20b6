package changeworkload

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// operation is one of a JSON patch (RFC 6902). The patches of this file begin
// with tests, so that the API server refuses them when the workload has become
// another version meanwhile: what we do never meets a newer template.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// holdPatch suspends the Deployment and, if a roll-out is in progress, pauses
// it. What was there before is recorded, and only that is undone.
func holdPatch(d *appsv1.Deployment, c *v1alpha1.ChangeWorkload, now time.Time) ([]byte, error) {
	paused := d.Spec.Paused
	if older := parse[v1alpha1.Hold](d.Annotations[v1alpha1.HoldAnnotation]); older != nil {
		paused = paused && older.Paused // else the pause is ours, of an attempt before
	}
	hold, err := json.Marshal(v1alpha1.Hold{Attempt: c.Spec.Attempt, Paused: paused})
	if err != nil {
		return nil, fmt.Errorf("record the hold: %w", err)
	}
	ops := append(sameRelease(c),
		operation{"add", label(v1alpha1.SuspendLabel), strconv.FormatInt(now.Unix(), 10)},
		operation{"add", label(v1alpha1.DefenseStatusLabel), v1alpha1.DefenseStatusProcessed},
		operation{"add", annotation(v1alpha1.HoldAnnotation), string(hold)},
	)
	if inProgress(d) {
		ops = append(ops, operation{"add", "/spec/paused", true})
	}
	return json.Marshal(ops)
}

// resumePatch ends the suspension and undoes what holdPatch did.
func resumePatch(d *appsv1.Deployment, c *v1alpha1.ChangeWorkload) ([]byte, error) {
	ops := append(sameRelease(c),
		operation{"add", label(v1alpha1.DefenseStatusLabel), v1alpha1.DefenseStatusProcessed})
	if _, ok := d.Labels[v1alpha1.SuspendLabel]; ok {
		ops = append(ops, operation{Op: "remove", Path: label(v1alpha1.SuspendLabel)})
	}
	if raw, ok := d.Annotations[v1alpha1.HoldAnnotation]; ok {
		ops = append(ops, operation{Op: "remove", Path: annotation(v1alpha1.HoldAnnotation)})
		if hold := parse[v1alpha1.Hold](raw); hold != nil && d.Spec.Paused && !hold.Paused {
			ops = append(ops, operation{Op: "remove", Path: "/spec/paused"})
		}
	}
	return json.Marshal(ops)
}

// processedPatch marks the Deployment as processed.
func processedPatch(c *v1alpha1.ChangeWorkload) ([]byte, error) {
	return json.Marshal(append(sameRelease(c),
		operation{"add", label(v1alpha1.DefenseStatusLabel), v1alpha1.DefenseStatusProcessed}))
}

// sameRelease are the tests that the Deployment still is this release. They
// also prove that it has labels and annotations to add to.
func sameRelease(c *v1alpha1.ChangeWorkload) []operation {
	return []operation{
		{"test", label(v1alpha1.VersionKey), c.Spec.Reversion},
		{"test", annotation(v1alpha1.AttemptAnnotation), strconv.FormatInt(c.Spec.Attempt, 10)},
	}
}

// inProgress says whether pods may still be replaced.
func inProgress(d *appsv1.Deployment) bool {
	s := d.Status
	return s.ObservedGeneration < d.Generation || s.UpdatedReplicas < replicas(d) || s.Replicas > s.UpdatedReplicas
}

// complete says whether the roll-out is over and all is Ready.
func complete(d *appsv1.Deployment) bool {
	return !inProgress(d) && d.Status.AvailableReplicas >= replicas(d)
}

func replicas(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

// parse reads the JSON of an annotation; nil when it is absent or malformed.
func parse[T any](raw string) *T {
	var v T
	if raw == "" || json.Unmarshal([]byte(raw), &v) != nil {
		return nil
	}
	return &v
}

func label(key string) string      { return "/metadata/labels/" + escape(key) }
func annotation(key string) string { return "/metadata/annotations/" + escape(key) }

// escape writes a key as a JSON pointer's token (RFC 6901).
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
