//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/test/e2e/knativerequest"
)

// requestInterval is the time between two requests of knativeRequests.
const requestInterval = 50 * time.Millisecond

// knativeRequests are requests that a test sends to a Knative Service, one after the other, until
// it ends.
type knativeRequests struct {
	target knativerequest.Target
	mu     sync.Mutex
	// answers are the Revisions that answered.
	answers []string
}

// sendRequests begins to send requests to a Service of the double's image. A request that fails
// fails the test.
func (n *namespace) sendRequests(t *testing.T, service string) *knativeRequests {
	t.Helper()
	return n.sendWith(t, service, knativerequest.Target.Ask)
}

// sendWith begins to send requests to a Service when it answers one: the ingress may learn of a Service
// after it is Ready. Later a request for which ask returns an error fails the test.
func (n *namespace) sendWith(t *testing.T, service string, ask func(knativerequest.Target, context.Context, time.Duration) (string, error)) *knativeRequests {
	t.Helper()
	target, err := knativerequest.To(t.Context(), n.kube, n.name, service)
	if err != nil {
		t.Fatal(err)
	}
	await(t, rolloutTimeout, service+" answers", func(ctx context.Context) error {
		_, err := ask(target, ctx, shortTimeout)
		return err
	})
	r := &knativeRequests{target: target}
	ctx, stop := context.WithCancel(t.Context())
	var sender sync.WaitGroup
	sender.Go(func() {
		for {
			revision, err := ask(r.target, ctx, shortTimeout)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				t.Errorf("request to %s: %v", r.target.Host, err)
				return
			}
			r.mu.Lock()
			r.answers = append(r.answers, revision)
			r.mu.Unlock()
			select {
			case <-ctx.Done():
			case <-time.After(requestInterval):
			}
		}
	})
	t.Cleanup(func() {
		stop()
		sender.Wait()
	})
	return r
}

// awaitOnly waits until 20 requests in a row were answered by a Revision. Earlier answers than its call do not count.
func (r *knativeRequests) awaitOnly(t *testing.T, revision string) {
	t.Helper()
	const last = 20
	r.mu.Lock()
	earlier := len(r.answers)
	r.mu.Unlock()
	await(t, rolloutTimeout, "only "+revision+" answers", func(context.Context) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		latest := r.answers[max(earlier, len(r.answers)-last):]
		if len(latest) < last || slices.ContainsFunc(latest, func(by string) bool { return by != revision }) {
			return fmt.Errorf("answered by %v", latest)
		}
		return nil
	})
}

// awaitAnswer waits until one of the last 20 requests was answered by a Revision.
func (r *knativeRequests) awaitAnswer(t *testing.T, revision string) {
	t.Helper()
	const last = 20
	await(t, rolloutTimeout, revision+" answers", func(context.Context) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if latest := r.answers[max(0, len(r.answers)-last):]; !slices.Contains(latest, revision) {
			return fmt.Errorf("answered by %v", latest)
		}
		return nil
	})
}

// shareOf says how many requests a Revision answered, from the first of them to the last.
func (r *knativeRequests) shareOf(revision string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := slices.Index(r.answers, revision)
	if first < 0 {
		return revision + " answered no request"
	}
	answers, all := 0, 0
	for i, by := range r.answers[first:] {
		if by == revision {
			answers, all = answers+1, i+1
		}
	}
	return fmt.Sprintf("%s answered %d requests, %d %% of those in %s", revision, answers, 100*answers/all, time.Duration(all)*requestInterval)
}
