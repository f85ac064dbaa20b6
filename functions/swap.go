package functions

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/breakwater-dev/breakwater/apis/change/statuspatch"
)

// Object is an object of ours.
type Object[T any] interface {
	metav1.Object
	DeepCopy() T
}

// Store reads and patches objects of one kind in one namespace; the generated
// clients are Stores.
type Store[T any] interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error)
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
		after := before.DeepCopy()
		if err := decide(after); err != nil {
			return err
		}
		patch, err := statuspatch.Facts(before, after, fields)
		if err != nil {
			return Permanent(err)
		}
		stored = before
		if patch == nil {
			return nil
		}
		stored, err = store.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		if err != nil {
			return fmt.Errorf("write the status of %s: %w", name, err)
		}
		return nil
	})
	return stored, err
}
