package groupcommit

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Store is where the objects are.
type Store[O metav1.Object] interface {
	// Cached returns what is known of the object, which may be old.
	Cached(types.NamespacedName) (O, bool)
	// Live returns the object as it is.
	Live(context.Context, types.NamespacedName) (O, error)
	// Swap writes the object if its resourceVersion is still the live one, and
	// returns what was written; a conflict otherwise.
	Swap(context.Context, O) (O, error)
}

// Decision is what becomes of a group.
type Decision[O, A any] struct {
	// Changed says that Next is to be written.
	Changed bool
	// Next is the object after the group; not the one that was given, which may
	// be shared.
	Next O
	// Answers are those to the requests, in their order. They count once Next
	// is written.
	Answers []A
}

// Decide decides about a group on a state of the object, in the order of the
// requests. It has no side effects: it may be asked many times for one group.
type Decide[O, R, A any] func(state O, group []R) Decision[O, A]
