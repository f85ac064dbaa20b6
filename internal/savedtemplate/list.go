package savedtemplate

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// List reads the saved templates of a workload from the API server, latest attempt first.
func List(ctx context.Context, client kubernetes.Interface, w *workload.Workload) ([]Saved, error) {
	list, err := client.AppsV1().ControllerRevisions(w.Namespace).List(ctx, metav1.ListOptions{LabelSelector: Selector(w.UID).String()})
	if err != nil {
		return nil, fmt.Errorf("list the saved templates of %s %s/%s: %w", w.Kind.Kind, w.Namespace, w.Name, err)
	}
	return ReadAll(list.Items, w.UID), nil
}

// ListFromController reads the templates in the ReplicaSets or ControllerRevisions of a workload from the API server.
// pods is the workload's selector.
func ListFromController(ctx context.Context, client kubernetes.Interface, dynamic dynamic.Interface, w *workload.Workload, pods *metav1.LabelSelector) ([]Template, error) {
	selector, err := metav1.LabelSelectorAsSelector(pods)
	if err != nil {
		return nil, fmt.Errorf("selector of %s %s/%s: %w", w.Kind.Kind, w.Namespace, w.Name, err)
	}
	matching := metav1.ListOptions{LabelSelector: selector.String()}
	if w.Kind.Revisions == workload.ReplicaSets {
		list, err := dynamic.Resource(appsv1.SchemeGroupVersion.WithResource("replicasets")).Namespace(w.Namespace).List(ctx, matching)
		if err != nil {
			return nil, fmt.Errorf("list the ReplicaSets of %s/%s: %w", w.Namespace, w.Name, err)
		}
		return FromReplicaSets(list.Items, w)
	}
	list, err := client.AppsV1().ControllerRevisions(w.Namespace).List(ctx, matching)
	if err != nil {
		return nil, fmt.Errorf("list the ControllerRevisions of %s/%s: %w", w.Namespace, w.Name, err)
	}
	return FromControllerRevisions(list.Items, w)
}
