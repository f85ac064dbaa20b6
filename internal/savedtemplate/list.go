package savedtemplate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/breakwater-dev/breakwater/internal/pagedlist"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

const (
	// revisionsPerPage is the number of ControllerRevisions per list call.
	revisionsPerPage = 10
	// UnstructuredPerPage is the number of unstructured objects per list call.
	UnstructuredPerPage = 20
)

// List reads the saved templates of a workload from the API server, latest attempt first.
func List(ctx context.Context, client kubernetes.Interface, w *workload.Workload) ([]Saved, error) {
	return listSaved(ctx, client, w, func(k Saved) Saved { return k })
}

// ListReleases is List without the templates.
func ListReleases(ctx context.Context, client kubernetes.Interface, w *workload.Workload) ([]Saved, error) {
	return listSaved(ctx, client, w, func(k Saved) Saved { k.Template = nil; return k })
}

func listSaved(ctx context.Context, client kubernetes.Interface, w *workload.Workload, trim func(Saved) Saved) (all []Saved, err error) {
	options := metav1.ListOptions{LabelSelector: Selector(w.UID).String(), Limit: revisionsPerPage}
	err = pagedlist.Each(ctx, client.AppsV1().ControllerRevisions(w.Namespace).List, options, func(r *appsv1.ControllerRevision) error {
		if k, ok := Read(r, w.UID); ok {
			all = append(all, trim(k))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the saved templates of %s %s/%s: %w", w.Kind.Kind, w.Namespace, w.Name, err)
	}
	slices.SortFunc(all, func(a, b Saved) int { return cmp.Compare(b.Release.Attempt, a.Release.Attempt) })
	return all, nil
}

// ListFromController reads the templates in the ReplicaSets or ControllerRevisions of a workload from the API server, and
// returns what trim keeps of each, or all if trim is nil. pods is the workload's selector.
func ListFromController(ctx context.Context, client kubernetes.Interface, dynamic dynamic.Interface, w *workload.Workload, pods *metav1.LabelSelector, trim func(Template) Template) (all []Template, err error) {
	selector, err := metav1.LabelSelectorAsSelector(pods)
	if err != nil {
		return nil, fmt.Errorf("selector of %s %s/%s: %w", w.Kind.Kind, w.Namespace, w.Name, err)
	}
	keep := func(found []Template, err error) error {
		for _, t := range found {
			if trim != nil {
				t = trim(t)
			}
			all = append(all, t)
		}
		return err
	}
	if w.Kind.Revisions == workload.ReplicaSets {
		sets := dynamic.Resource(appsv1.SchemeGroupVersion.WithResource("replicasets")).Namespace(w.Namespace)
		err = pagedlist.Each(ctx, sets.List, metav1.ListOptions{LabelSelector: selector.String(), Limit: UnstructuredPerPage},
			func(set *unstructured.Unstructured) error {
				return keep(FromReplicaSets([]unstructured.Unstructured{*set}, w))
			})
	} else {
		err = pagedlist.Each(ctx, client.AppsV1().ControllerRevisions(w.Namespace).List, metav1.ListOptions{LabelSelector: selector.String(), Limit: revisionsPerPage},
			func(r *appsv1.ControllerRevision) error {
				return keep(FromControllerRevisions([]appsv1.ControllerRevision{*r}, w))
			})
	}
	if err != nil {
		return nil, fmt.Errorf("list the %ss of %s/%s: %w", w.Kind.Revisions, w.Namespace, w.Name, err)
	}
	return all, nil
}
