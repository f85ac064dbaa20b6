package cli

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli/diagnosis"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// missed returns the version of the target's pod template if the webhook has missed this template, else "". The
// annotations are then those of the previous template.
//
// A difference between this version and that of the annotations is not enough: the webhook and the plugin may know
// different fields of a template. A difference from the saved template is not enough either: a new default of
// Kubernetes is missing in it. So the workload's revisions decide. releases are those of the workload.
func (c *clients) missed(ctx context.Context, t target, releases []v1alpha1.ChangeWorkload) (string, error) {
	annotated, known := v1alpha1.ReleaseOf(t.object.GetAnnotations())
	if !known {
		return "", nil
	}
	w, err := workload.FromUnstructured(t.kind(), t.object)
	if err != nil {
		return "", err
	}
	version, err := workload.Version(w.Kind, &w.Template)
	if err != nil || version == annotated.Version {
		return "", err
	}
	all, err := c.saved(ctx, t)
	if err != nil {
		return "", err
	}
	saved, ok := savedtemplate.Find(all, annotated.Version)
	if !ok {
		return "", nil
	}
	template, err := saved.PodTemplate(w.Kind)
	if err != nil {
		return "", err
	}
	if of, err := workload.Version(w.Kind, template); err != nil || of == version {
		return "", err
	}
	if inRevisions, err := c.missedInRevisions(ctx, t, w, diagnosis.Input{Releases: releases}.Find(annotated), annotated.Version, version); err != nil || !inRevisions {
		return "", err
	}
	return version, nil
}

// missedInRevisions reports whether the revisions of the workload show that its template is not that of version
// annotated, the version in its annotations. release is the ChangeWorkload of these, or nil; current is the version of the
// workload's template.
func (c *clients) missedInRevisions(ctx context.Context, t target, w *workload.Workload, release *v1alpha1.ChangeWorkload, annotated, current string) (bool, error) {
	switch w.Kind.GroupKind() {
	case workload.Deployment.GroupKind():
		return c.missedInReplicaSets(ctx, w, release, annotated, current)
	case workload.StatefulSet.GroupKind(), workload.DaemonSet.GroupKind():
		// The controller creates the ControllerRevision of a template before it writes observedGeneration.
		observed, _, _ := unstructured.NestedInt64(t.object.Object, "status", "observedGeneration")
		if observed < w.Generation {
			return true, nil
		}
		return c.missedInControllerRevisions(ctx, w, annotated, current)
	default:
		return true, nil // a new default in Kubernetes changes no custom resource
	}
}

// missedInReplicaSets reports whether a ReplicaSet of the workload has annotated as its version annotation, and was created
// after the release had succeeded, or has a template whose version is not current. The API server sets a new default in both
// templates, and creates no ReplicaSet. That of the release may be deleted (revisionHistoryLimit); one that was deleted by
// hand looks the same.
func (c *clients) missedInReplicaSets(ctx context.Context, w *workload.Workload, release *v1alpha1.ChangeWorkload, annotated, current string) (bool, error) {
	list, err := c.kube.AppsV1().ReplicaSets(w.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, c.listError("ReplicaSets", "change", w.Namespace, err)
	}
	for i := range list.Items {
		rs := &list.Items[i]
		if !metav1.IsControlledBy(rs, w) || rs.Annotations[v1alpha1.VersionKey] != annotated {
			continue
		}
		if release != nil && release.SucceededBefore(rs.CreationTimestamp.Time) {
			return true, nil
		}
		delete(rs.Spec.Template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
		if of, err := workload.Version(w.Kind, &rs.Spec.Template); err != nil || of != current {
			return err == nil, err
		}
	}
	return false, nil
}

// missedInControllerRevisions reports whether several ControllerRevisions of the workload have version annotated, the
// latest one has another version (see savedtemplate.CountReleased), or one has version annotated and the template whose
// version is current: that of the former template was deleted (revisionHistoryLimit).
func (c *clients) missedInControllerRevisions(ctx context.Context, w *workload.Workload, annotated, current string) (bool, error) {
	list, err := c.kube.AppsV1().ControllerRevisions(w.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, c.listError("ControllerRevisions", "change", w.Namespace, err)
	}
	templates, err := savedtemplate.FromControllerRevisions(list.Items, w)
	if err != nil {
		return false, err
	}
	n, latest := savedtemplate.CountReleased(templates, annotated)
	ofCurrent := slices.ContainsFunc(templates, func(t savedtemplate.Template) bool { return t.Recorded == annotated && t.Version == current })
	return n > 1 || ofCurrent || len(templates) > 0 && !latest, nil
}
