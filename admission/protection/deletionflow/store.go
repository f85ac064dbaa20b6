package deletionflow

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	policyclient "github.com/breakwater-dev/breakwater/client/clientset/versioned/typed/policy/v1alpha1"
	listers "github.com/breakwater-dev/breakwater/client/listers/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/deletionflow"
	"github.com/breakwater-dev/breakwater/internal/groupcommit"
)

// Committer decides and counts deletions.
type Committer = groupcommit.Committer[*v1alpha1.PodDeletionFlowControl, deletionflow.Request, deletionflow.Decision]

// NewCommitter returns a Committer. Skew is how far the clock may differ from the
// API server's. It calls observe, unless that is nil, when a group ends.
func NewCommitter(lister listers.PodDeletionFlowControlLister, client policyclient.PodDeletionFlowControlsGetter,
	clock clock.PassiveClock, skew time.Duration, observe func(groupcommit.Stats)) *Committer {
	return groupcommit.New(store{lister, client}, decide(clock, skew), groupcommit.Options{Observe: observe})
}

type decision = groupcommit.Decision[*v1alpha1.PodDeletionFlowControl, deletionflow.Decision]

func decide(clock clock.PassiveClock, skew time.Duration) groupcommit.Decide[*v1alpha1.PodDeletionFlowControl, deletionflow.Request, deletionflow.Decision] {
	return func(f *v1alpha1.PodDeletionFlowControl, group []deletionflow.Request) decision {
		decisions, status := deletionflow.Decide(f, group, clock.Now(), skew)
		if status == nil {
			return decision{Answers: decisions}
		}
		next := f.DeepCopy()
		next.Status = *status
		return decision{Changed: true, Next: next, Answers: decisions}
	}
}

// store reads and writes flow controls.
type store struct {
	lister listers.PodDeletionFlowControlLister
	client policyclient.PodDeletionFlowControlsGetter
}

func (s store) Cached(key types.NamespacedName) (*v1alpha1.PodDeletionFlowControl, bool) {
	f, err := s.lister.Get(key.Name)
	return f, err == nil
}

func (s store) Live(ctx context.Context, key types.NamespacedName) (*v1alpha1.PodDeletionFlowControl, error) {
	return s.client.PodDeletionFlowControls().Get(ctx, key.Name, metav1.GetOptions{})
}

func (s store) Swap(ctx context.Context, next *v1alpha1.PodDeletionFlowControl) (*v1alpha1.PodDeletionFlowControl, error) {
	return s.client.PodDeletionFlowControls().UpdateStatus(ctx, next, metav1.UpdateOptions{})
}
