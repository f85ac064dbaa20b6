// Package podlist lists the pods of a namespace for PodUnavailableBudgets, in bounded memory.
package podlist

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/groupcommit"
	"github.com/breakwater-dev/breakwater/internal/pagedlist"
)

// Lister lists pods. It is safe for concurrent use.
type Lister struct {
	pods   corev1client.PodsGetter
	most   int
	trim   func(*corev1.Pod) *corev1.Pod
	places pagedlist.Places
}

// New returns a Lister of pods with the fields that trim keeps, at most so many bytes of a list.
func New(pods corev1client.PodsGetter, most int, trim func(*corev1.Pod) *corev1.Pod) *Lister {
	return &Lister{pods: pods, most: most, trim: trim, places: pagedlist.NewPlaces()}
}

// ForDeletions returns a Lister for the deletions of controllers.
func ForDeletions(pods corev1client.PodsGetter) *Lister {
	return New(pods, pagedlist.MaxKept, budget.TrimForDeletion)
}

// List returns the pods that the selector selects, and their resourceVersion.
func (l *Lister) List(ctx context.Context, namespace, selector string) ([]*corev1.Pod, string, error) {
	ctx, leave, err := l.places.Enter(ctx, namespace)
	if err != nil {
		return nil, "", fmt.Errorf("list pods of namespace %s: wait for other lists: %w", namespace, groupcommit.ErrDeadline)
	}
	defer leave()
	var resourceVersion string
	list := func(ctx context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
		page, err := l.pods.Pods(namespace).List(ctx, o)
		if err == nil {
			resourceVersion = page.ResourceVersion
		}
		return page, err
	}
	all, err := pagedlist.Trimmed(ctx, list, metav1.ListOptions{LabelSelector: selector}, l.most, l.trim)
	if err != nil {
		return nil, "", fmt.Errorf("list pods of namespace %s: %w", namespace, err)
	}
	return all, resourceVersion, nil
}
