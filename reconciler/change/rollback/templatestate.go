package rollback

import (
	"context"
	"slices"

	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/liveworkload"
)

// newerTemplate is the reason why a release is not rolled back, for people.
const newerTemplate = "a newer template was applied, and the webhook has not recorded its release"

// templateState is whether the release in the annotations of a workload is that of its template.
type templateState int

const (
	// templateRecorded: it is. The version of the template may be another one because of a new default of
	// Kubernetes.
	templateRecorded templateState = iota
	// templateMissed: the webhook missed the template.
	templateMissed
	// templateUnknown: the versions differ, and no revision of the workload shows why.
	templateUnknown
)

// stateOfTemplate returns whether the release of a workload that was read from the API server is that of its
// template. The webhook writes both at once, so no delay of it is mistaken for a template that it missed.
func (r *Reconciler) stateOfTemplate(ctx context.Context, w *liveworkload.Workload) (templateState, error) {
	if w.VersionRecorded {
		return templateRecorded, nil
	}
	if !w.Kind.IsBuiltIn() || w.Kind.Revisions == workload.KnativeRevisions {
		return templateMissed, nil // a new default of Kubernetes changes no custom resource
	}
	templates, err := r.templates(ctx, w)
	switch {
	case err != nil:
		return templateUnknown, err
	case w.Kind.Revisions == workload.ReplicaSets:
		return inReplicaSets(w, templates), nil
	case !w.Observed():
		return templateUnknown, nil // the ControllerRevision of the template may not exist yet
	default:
		return inControllerRevisions(w, templates), nil
	}
}

// inReplicaSets compares the template with those of the ReplicaSets that have the release. The API server sets a
// new default in both, and in the templates of other releases, which prove it: without one, it may be that the
// ReplicaSet of the release was deleted (revisionHistoryLimit), and that this one has the template that was missed.
func inReplicaSets(w *liveworkload.Workload, templates []savedtemplate.Template) templateState {
	state, newDefault := templateUnknown, false
	for _, t := range templates {
		switch {
		case t.Recorded != w.Release.Version:
			newDefault = newDefault || t.Recorded != "" && t.Recorded != t.Version
		case t.Version != w.TemplateVersion:
			return templateMissed
		default:
			state = templateRecorded
		}
	}
	if !newDefault {
		return templateUnknown
	}
	return state
}

// inControllerRevisions decides by savedtemplate.CountReleased. If the only ControllerRevision with the release has
// another version, it is that of a template that was missed, after the one of the release was deleted
// (revisionHistoryLimit).
func inControllerRevisions(w *liveworkload.Workload, templates []savedtemplate.Template) templateState {
	n, latest := savedtemplate.CountReleased(templates, w.Release.Version)
	changed := slices.ContainsFunc(templates, func(t savedtemplate.Template) bool {
		return t.Recorded == w.Release.Version && t.Version != w.Release.Version
	})
	switch {
	case n == 0:
		return templateUnknown
	case n > 1 || !latest || changed:
		return templateMissed
	default:
		return templateRecorded
	}
}
