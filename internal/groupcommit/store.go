package groupcommit

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Store reads and writes the objects.
type Store[O metav1.Object] interface {
	// Cached returns the object from a cache, which may be stale.
	Cached(types.NamespacedName) (O, bool)
	// Live returns the object from the API server.
	Live(context.Context, types.NamespacedName) (O, error)
	// Swap writes the object if its resourceVersion is the live one and returns the
	// written object; otherwise it returns a conflict.
	Swap(context.Context, O) (O, error)
}

// Decision is the decision on a group.
type Decision[O, A any] struct {
	// Changed reports whether Next has to be written.
	Changed bool
	// Next is the object after the group. It must be a copy, because the given
	// object may be shared.
	Next O
	// Answers are the answers to the requests, in their order. They are valid once
	// Next is written.
	Answers []A
}

// Decide decides on a group in the order of its requests. It may be called many times for one
// group, so its side effects must be idempotent.
type Decide[O, R, A any] func(state O, group []R) Decision[O, A]
