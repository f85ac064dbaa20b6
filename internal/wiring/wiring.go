// Package wiring has what constructors of controllers share. sharedmain calls a
// constructor once, when the process starts. A constructor cannot return an
// error, so it panics: a retry does not help.
package wiring

import (
	"context"

	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/logging"
)

// Must panics if the error is not nil.
type Must func(error)

// NewMust returns a Must that logs the attempt with the error.
func NewMust(ctx context.Context, attempt string) Must {
	return func(err error) {
		if err != nil {
			logging.FromContext(ctx).Panicw(attempt, "error", err)
		}
	}
}

// Watch adds a handler to an informer.
func (must Must) Watch(informer cache.SharedInformer, handler cache.ResourceEventHandler) {
	_, err := informer.AddEventHandler(handler)
	must(err)
}

// Object returns the object that a handler was called with: for a deletion that
// the informer missed, the last known state. It returns false for another type.
func Object[T any](obj any) (T, bool) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	t, ok := obj.(T)
	return t, ok
}
