package savedtemplate

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
