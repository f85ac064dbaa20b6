package verdict

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

const (
	// maxWritten is the size of the LRU cache of batches.
	maxWritten = 2000
	// maxWrittenPods is the maximum number of pods of a cached batch. It bounds the memory.
	maxWrittenPods = 20
)

// written caches batches as this process wrote them last. They are often unchanged when the
// verdict of the next stage arrives, which then needs no read.
type written struct{ batches *lru.Cache }

func newWritten() *written { return &written{lru.New(maxWritten)} }

func (w *written) add(batch *v1alpha1.ChangePod) {
	if len(batch.Spec.PodInfos) <= maxWrittenPods {
		w.batches.Add(batch.UID, batch)
	}
}

// take removes and returns a batch, or nil.
func (w *written) take(uid types.UID) *v1alpha1.ChangePod {
	batch, ok := w.batches.Get(uid)
	if !ok {
		return nil
	}
	w.batches.Remove(uid)
	return batch.(*v1alpha1.ChangePod)
}
