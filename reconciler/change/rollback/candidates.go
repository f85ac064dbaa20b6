package rollback

import (
	"cmp"
	"context"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/liveworkload"
)

// candidates gathers the possible targets: saved templates and, if needed, the
// versions with their pods. Templates come from the API server, because caches omit
// them.
func (r *Reconciler) candidates(ctx context.Context, c *v1alpha1.ChangeWorkload, in Input, decision Decision, w *liveworkload.Workload) (Candidates, error) {
	saved, err := savedtemplate.List(ctx, r.kube, w.Workload)
	if err != nil {
		return Candidates{}, err
	}
	out := Candidates{
		Current: w.Release.Version,
		Saved:   saved,
		Failed: func(version string) bool {
			other, err := r.changeWorkloads.ChangeWorkloads(c.Namespace).Get(v1alpha1.ChangeWorkloadName(w.Name, version))
			return err == nil && other.Spec.WorkloadRef.UID == w.UID && other.CountsAsFailed()
		},
	}
	if decision.Kind != v1alpha1.RollbackSelfHealing {
		return out, nil
	}
	for _, p := range in.Pods {
		out.CurrentHasReadyPod = out.CurrentHasReadyPod || p.Ready
	}
	out.Versions, err = r.versions(ctx, w)
	return out, err
}

// versions returns the versions of a workload with their pods.
func (r *Reconciler) versions(ctx context.Context, w *liveworkload.Workload) ([]VersionState, error) {
	templates, err := r.templates(ctx, w)
	if err != nil {
		return nil, err
	}
	var out []VersionState
	for _, t := range templates {
		pods, err := r.ofTemplate(w.Workload, t)
		if err != nil {
			return nil, err
		}
		version := t.Version
		if !w.VersionRecorded {
			version = cmp.Or(t.Recorded, version) // a new default of Kubernetes changed the version of each template
		}
		state := VersionState{Version: version, Number: t.Revision, Template: t.Raw, Pods: len(pods)}
		for _, p := range pods {
			if p.Ready {
				state.Ready++
			}
		}
		out = append(out, state)
	}
	return out, nil
}

// templates returns the templates in the workload's ReplicaSets or
// ControllerRevisions.
func (r *Reconciler) templates(ctx context.Context, w *liveworkload.Workload) ([]savedtemplate.Template, error) {
	if w.Kind.Revisions == workload.KnativeRevisions {
		return nil, nil // only saved templates: Serving itself keeps traffic on a Revision that is Ready
	}
	return savedtemplate.ListFromController(ctx, r.kube, r.dynamic, w.Workload, w.Selector, nil)
}
