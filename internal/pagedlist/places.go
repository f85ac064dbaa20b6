package pagedlist

import (
	"context"
	"time"

	"github.com/breakwater-dev/breakwater/internal/fairsemaphore"
)

const (
	// places is the number of places. A namespace has one of two, so the other is free for other namespaces.
	places = 2
	// placeTimeout limits how long a place is kept: others wait for it.
	placeTimeout = 10 * time.Second
)

// Places limits how many callers list at a time, and for how long, by namespace. It is safe for concurrent use.
type Places struct{ semaphore *fairsemaphore.Semaphore }

// NewPlaces returns Places that are free.
func NewPlaces() Places { return Places{fairsemaphore.New(places)} }

// Enter waits for a place, until ctx ends; leave returns it. The lists are made with the context that it returns.
func (p Places) Enter(ctx context.Context, namespace string) (limited context.Context, leave func(), err error) {
	if err := p.semaphore.Acquire(ctx, namespace); err != nil {
		return nil, nil, err
	}
	limited, cancel := context.WithTimeout(ctx, placeTimeout)
	return limited, func() { cancel(); p.semaphore.Release(namespace) }, nil
}
