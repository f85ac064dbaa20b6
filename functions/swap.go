package functions

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/breakwater-dev/breakwater/internal/statuspatch"
)

// Object is an object of ours.
type Object[T any] interface {
	statuspatch.Object
	DeepCopy() T
}

// Store reads and patches objects of one kind in one namespace; the generated
// clients are Stores.
type Store[T any] interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
	statuspatch.Patcher[T]
}

// Swap writes facts by compare-and-swap. It reads the object, lets decide
// change a copy of it, and writes what is different in the named fields of the
// status, provided that nobody has written in between; if somebody has, it
// reads and decides again (five times, some ten milliseconds apart, then the
// conflict is the error). A decide that changes nothing writes nothing; an
// error of decide ends it. The object is returned as it is stored.
func Swap[T Object[T]](ctx context.Context, store Store[T], name string, fields []string, decide func(T) error) (T, error) {
	var stored T
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		before, err := store.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		stored, err = swapOnce(ctx, store, before, fields, decide)
		return err
	})
	return stored, err
}

// SwapFrom is Swap for an object that the API server has just returned: it
// decides on that first, and reads only if somebody has written since or the
// object is gone. It is for a decide that changes the object as it is known,
// for only a write finds out whether it is still stored like that.
func SwapFrom[T Object[T]](ctx context.Context, store Store[T], known T, fields []string, decide func(T) error) (T, error) {
	stored, err := swapOnce(ctx, store, known, fields, decide)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return Swap(ctx, store, known.GetName(), fields, decide)
	}
	return stored, err
}

// swapOnce is one try, on the object as it was before.
func swapOnce[T Object[T]](ctx context.Context, store Store[T], before T, fields []string, decide func(T) error) (T, error) {
	after := before.DeepCopy()
	if err := decide(after); err != nil {
		return before, err
	}
	stored, err := statuspatch.Write(ctx, store, "", before, after, fields)
	if errors.Is(err, statuspatch.ErrOtherWriter) {
		err = Permanent(err)
	}
	return stored, err
}
