package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/breakwater-dev/breakwater/test/e2e/knativerequest"
)

const (
	// requestInterval is the time between two requests of a load.
	requestInterval = 50 * time.Millisecond
	requestTimeout  = 10 * time.Second
)

// load is a sender of requests to the Knative Service, one after the other. It ends with the first
// request that fails.
type load struct {
	target knativerequest.Target
	sender sync.WaitGroup

	mu sync.Mutex
	// answers are the Revisions that answered since the last take.
	answers []string
	err     error
}

// sendRequests sends requests to the Service until the context ends.
func (s *steps) sendRequests(ctx context.Context) (*load, error) {
	target, err := knativerequest.To(ctx, s.kube, services, "web")
	if err != nil {
		return nil, err
	}
	l := &load{target: target}
	l.sender.Go(func() {
		for ctx.Err() == nil {
			revision, err := l.target.Ask(ctx, requestTimeout)
			if ctx.Err() != nil || !l.add(revision, err) {
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(requestInterval):
			}
		}
	})
	return l, nil
}

// wait waits until no request is sent any more.
func (l *load) wait() {
	if l != nil {
		l.sender.Wait()
	}
}

// add records an answer, and reports whether there was one.
func (l *load) add(revision string, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.err = fmt.Errorf("request to %s: %w", l.target.Host, err)
		return false
	}
	l.answers = append(l.answers, revision)
	return true
}

// failed returns the error of the request that failed, or nil.
func (l *load) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// answered returns the number of requests that were answered since the last take.
func (l *load) answered() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.answers)
}

// onlyLast reports whether a Revision answered the last n requests, and all n were answered after the earlier ones.
func (l *load) onlyLast(n, earlier int, revision string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.answers)-earlier >= n &&
		!slices.ContainsFunc(l.answers[len(l.answers)-n:], func(by string) bool { return by != revision })
}

// take says how many requests each Revision answered since the last take.
func (l *load) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	count := map[string]int{}
	for _, by := range l.answers {
		count[by]++
	}
	l.answers = nil
	var texts []string
	for _, by := range slices.Sorted(maps.Keys(count)) {
		texts = append(texts, fmt.Sprintf("%s answered %d", by, count[by]))
	}
	return strings.Join(texts, ", ") + ", none failed"
}
