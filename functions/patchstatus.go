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

// Object is an API object.
type Object[T any] interface {
	statuspatch.Object
	DeepCopy() T
}

// Store reads and patches objects of one kind in one namespace. The generated
// clients implement it.
type Store[T any] interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
	statuspatch.Patcher[T]
}

// PatchStatus writes facts by compare-and-swap. It reads the object, calls decide
// with a copy, and patches the named status fields that decide changed, provided
// that the object is unchanged. After a conflict it reads and decides again, five
// times in all, then it returns the conflict. If decide changes nothing, nothing is
// written; an error of decide is returned. PatchStatus returns the stored object.
func PatchStatus[T Object[T]](ctx context.Context, store Store[T], name string, fields []string, decide func(T) error) (T, error) {
	var stored T
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		before, err := store.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		stored, err = patchStatusOnce(ctx, store, before, fields, decide)
		return err
	})
	return stored, err
}

// PatchStatusFrom is PatchStatus for an object that the API server has just
// returned. It decides on that object first, and reads it again only after a
// conflict or if it was deleted. decide must change the given object: only a write
// detects that the object is outdated.
func PatchStatusFrom[T Object[T]](ctx context.Context, store Store[T], object T, fields []string, decide func(T) error) (T, error) {
	stored, err := patchStatusOnce(ctx, store, object, fields, decide)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return PatchStatus(ctx, store, object.GetName(), fields, decide)
	}
	return stored, err
}

// patchStatusOnce makes one attempt, based on object before.
func patchStatusOnce[T Object[T]](ctx context.Context, store Store[T], before T, fields []string, decide func(T) error) (T, error) {
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
