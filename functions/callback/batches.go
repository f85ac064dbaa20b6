package callback

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
	"github.com/breakwater-dev/breakwater/events"
)

// nodeIndex is the index of ChangePods by order node.
const nodeIndex = "node"

// Batches finds ChangePods by their order nodes in a cache, because the API server would
// compare each ChangePod of the namespace. The cache may lag behind, so a batch that it does
// not have is looked up at the API server.
type Batches struct{ informer cache.SharedIndexInformer }

// NewBatches returns an empty cache, which Run fills.
func NewBatches(client versioned.Interface) (*Batches, error) {
	informer := cache.NewSharedIndexInformer(newListWatch(client), &v1alpha1.ChangePod{}, 0, cache.Indexers{nodeIndex: nodesOf})
	if err := informer.SetTransform(trim); err != nil {
		return nil, fmt.Errorf("set up the cache of ChangePods: %w", err)
	}
	return &Batches{informer}, nil
}

// Run fills the cache and follows changes until ctx ends.
func (b *Batches) Run(ctx context.Context) error {
	b.informer.RunWithContext(ctx)
	return nil
}

// ofNode returns the batch with a node; nil if the cache has none.
func (b *Batches) ofNode(node string) *v1alpha1.ChangePod {
	found, err := b.informer.GetIndexer().ByIndex(nodeIndex, node)
	if err != nil || len(found) == 0 {
		return nil
	}
	batch, _ := found[0].(*v1alpha1.ChangePod)
	return batch
}

// nodesOf is the index function.
func nodesOf(obj any) ([]string, error) {
	batch, ok := obj.(*v1alpha1.ChangePod)
	if !ok {
		return nil, errNotChangePod
	}
	return batch.Status.Nodes(), nil
}

// trim is the transform of the cache.
func trim(obj any) (any, error) {
	batch, ok := obj.(*v1alpha1.ChangePod)
	if !ok {
		return obj, nil // a deletion that the watch missed
	}
	return trimmed(batch), nil
}

// trimmed keeps only what the index and deliveries need, and of a batch that ended only its
// name: this bounds the memory of a cluster with many batches. A late verdict of such a batch
// is looked up at the API server. To trim a trimmed batch changes nothing.
func trimmed(batch *v1alpha1.ChangePod) *v1alpha1.ChangePod {
	out := &v1alpha1.ChangePod{ObjectMeta: metav1.ObjectMeta{
		Namespace: batch.Namespace, Name: batch.Name, UID: batch.UID, ResourceVersion: batch.ResourceVersion,
	}}
	if batch.Status.Phase == v1alpha1.BatchExecuteDone {
		return out
	}
	if whole := events.CopyOf(batch); whole != nil {
		return whole // events about it have a copy
	}
	out.OwnerReferences = batch.OwnerReferences
	if value, traced := batch.Annotations[v1alpha1.TraceparentAnnotation]; traced {
		out.Annotations = map[string]string{v1alpha1.TraceparentAnnotation: value}
	}
	out.Status.ChangePodID = batch.Status.ChangePodID
	if start := batch.Status.SubmissionOf(v1alpha1.StagePre); start != nil && len(start.EarlierNodes) > 0 {
		out.Status.Submissions = []v1alpha1.Submission{{Stage: v1alpha1.StagePre, EarlierNodes: start.EarlierNodes}}
	}
	return out
}

var errNotChangePod = errors.New("the object is not a ChangePod")

// indexTimeout is how long a verdict waits until the cache has its node: for the watch, and
// for function submit to store the answer with the node.
const indexTimeout = 500 * time.Millisecond

// indexInterval is the pause between two lookups in the cache.
const indexInterval = 20 * time.Millisecond
