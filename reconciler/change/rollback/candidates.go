package rollback

import (
	"cmp"
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/liveworkload"
)

// candidates gathers the possible targets: saved templates and, if needed, the
// versions with their pods. Templates come from the API server, because caches omit
// them.
func (r *Reconciler) candidates(ctx context.Context, c *v1alpha1.ChangeWorkload, s Situation, decision Decision, w *liveworkload.Workload) (Candidates, error) {
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
	for _, p := range s.Pods {
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
	selector, err := metav1.LabelSelectorAsSelector(w.Selector)
	if err != nil {
		return nil, fmt.Errorf("selector of %s %s/%s: %w", w.Kind.Kind, w.Namespace, w.Name, err)
	}
	matching := metav1.ListOptions{LabelSelector: selector.String()}
	if w.Kind.Revisions == workload.ReplicaSets {
		list, err := r.dynamic.Resource(appsv1.SchemeGroupVersion.WithResource("replicasets")).Namespace(w.Namespace).List(ctx, matching)
		if err != nil {
			return nil, fmt.Errorf("list the ReplicaSets of %s/%s: %w", w.Namespace, w.Name, err)
		}
		return savedtemplate.FromReplicaSets(list.Items, w.Workload)
	}
	list, err := r.kube.AppsV1().ControllerRevisions(w.Namespace).List(ctx, matching)
	if err != nil {
		return nil, fmt.Errorf("list the ControllerRevisions of %s/%s: %w", w.Namespace, w.Name, err)
	}
	return savedtemplate.FromControllerRevisions(list.Items, w.Workload)
}
