package server

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// errReplaced ends a call when its pod makes another one.
var errReplaced = errors.New("a later call of the pod replaced this one")

// openCalls has at most one open call of each pod: that of the container that was started
// last. So one pod cannot occupy the server with many calls.
type openCalls struct {
	mu    sync.Mutex
	byPod map[types.UID]*openCall
}

type openCall struct{ end context.CancelCauseFunc }

func newOpenCalls() *openCalls { return &openCalls{byPod: map[types.UID]*openCall{}} }

// begin ends the open call of the pod, and returns the context of the new one and a
// function that ends it.
func (o *openCalls) begin(ctx context.Context, pod types.UID) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	call := &openCall{cancel}
	o.mu.Lock()
	defer o.mu.Unlock()
	if earlier := o.byPod[pod]; earlier != nil {
		earlier.end(errReplaced)
	}
	o.byPod[pod] = call
	return ctx, func() {
		cancel(nil)
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.byPod[pod] == call {
			delete(o.byPod, pod)
		}
	}
}
