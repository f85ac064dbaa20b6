// Package pagedlist lists objects whose size users choose, in bounded memory: an object may have 1.5 MiB, and a namespace
// thousands of them.
package pagedlist

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// pageSize is the number of objects per list call, unless the options have a limit or the page exceeds maxPage.
	pageSize = 100
	// maxPage is the size in bytes of an encoded page with several objects. Decoded, it may need 30 times as much.
	maxPage = 4 << 20
	// MaxKept is how many bytes of one list a process with little memory keeps, in the encoding of the API server. Decoded, they
	// may need eight times as much.
	MaxKept = 8 << 20
)

// page is a list of objects, such as *corev1.PodList.
type page interface {
	runtime.Object
	metav1.ListInterface
}

// List is the call that lists a page. The API server ignores its limit if the resourceVersion is "0".
type List[L page] func(context.Context, metav1.ListOptions) (L, error)

// Each calls use for each object. Only one page is in memory: the pager of client-go reads the next one ahead, and reads
// the full list if a page has expired, which is an error here. A page that is too large is read again in smaller ones.
func Each[T runtime.Object, L page](ctx context.Context, list List[L], options metav1.ListOptions, use func(T) error) error {
	if options.Limit == 0 {
		options.Limit = pageSize
	}
	most, done := options.Limit, false
	for {
		if err := turnOf(ctx)(ctx, func() error {
			page, err := list(limitPage(ctx, options.Limit), options)
			if errors.Is(err, errPageTooLarge) {
				options.Limit = max(1, options.Limit/8)
				return nil
			}
			if err != nil {
				return err
			}
			if err := meta.EachListItem(page, func(o runtime.Object) error { return use(o.(T)) }); err != nil {
				return err
			}
			options.Limit, options.Continue = min(most, 2*options.Limit), page.GetContinue()
			done = options.Continue == ""
			return nil
		}); err != nil || done {
			return err
		}
	}
}

// limitPage returns a context with which a list call fails if its page is too large. One object has no limit.
func limitPage(ctx context.Context, objects int64) context.Context {
	if objects == 1 {
		return ctx
	}
	return context.WithValue(ctx, maxBytesKey{}, int64(maxPage))
}

// turnKey is the key of a Turn in a context.
type turnKey struct{}

// Turn calls page when that may be read and used.
type Turn func(ctx context.Context, page func() error) error

// WithTurn returns a context with which Each waits for a turn for each page.
func WithTurn(ctx context.Context, turn Turn) context.Context {
	return context.WithValue(ctx, turnKey{}, turn)
}

func turnOf(ctx context.Context) Turn {
	if turn, ok := ctx.Value(turnKey{}).(Turn); ok {
		return turn
	}
	return func(_ context.Context, page func() error) error { return page() }
}

// sized is an object that knows its encoded size in bytes.
type sized interface {
	runtime.Object
	Size() int
}

// Trimmed returns what trim keeps of each object; trim returns nil if it keeps nothing. It returns an error, and no
// object, if more than most bytes are kept.
func Trimmed[T any, P interface {
	*T
	sized
}, L page](ctx context.Context, list List[L], options metav1.ListOptions, most int, trim func(P) P) (all []P, err error) {
	kept := 0
	err = Each(ctx, list, options, func(o P) error {
		trimmed := trim(o)
		if trimmed == nil {
			return nil
		}
		if kept += trimmed.Size(); kept > most {
			return fmt.Errorf("the first %d of them have more than %d MiB, the limit", len(all)+1, most>>20)
		}
		all = append(all, trimmed)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}
