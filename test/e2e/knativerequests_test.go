//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// requestInterval is the time between two requests of knativeRequests.
const requestInterval = 50 * time.Millisecond

// knativeRequests are requests that a test sends to a Knative Service, one after the other, until
// it ends.
type knativeRequests struct {
	url, host string
	mu        sync.Mutex
	// answers are the Revisions that answered.
	answers []string
}

// sendRequests begins to send requests to a Service of the double's image. A request that fails
// fails the test.
func (n *namespace) sendRequests(t *testing.T, service string) *knativeRequests {
	t.Helper()
	ingress, err := n.kube.CoreV1().Services("breakwater-ingress").Get(t.Context(), "private", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := &knativeRequests{url: "http://" + ingress.Spec.ClusterIP + "/double/health", host: service + "." + n.name + ".svc.cluster.local"}
	ctx, stop := context.WithCancel(t.Context())
	var sender sync.WaitGroup
	sender.Go(func() {
		for {
			revision, err := r.send(ctx)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				t.Errorf("request to %s: %v", r.host, err)
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

func (r *knativeRequests) send(ctx context.Context) (revision string, err error) {
	ctx, cancel := context.WithTimeout(ctx, shortTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return "", err
	}
	request.Host = r.host
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	var body struct{ Revision string }
	if err := json.Unmarshal(raw, &body); response.StatusCode != http.StatusOK || err != nil {
		return "", fmt.Errorf("status %d, %q", response.StatusCode, raw)
	}
	return body.Revision, nil
}

// awaitOnly waits until the last 20 requests were answered by a Revision.
func (r *knativeRequests) awaitOnly(t *testing.T, revision string) {
	t.Helper()
	const last = 20
	await(t, rolloutTimeout, "only "+revision+" answers", func(context.Context) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if n := len(r.answers); n < last || slices.ContainsFunc(r.answers[n-last:], func(by string) bool { return by != revision }) {
			return fmt.Errorf("answered by %v", r.answers[max(0, n-last):])
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
