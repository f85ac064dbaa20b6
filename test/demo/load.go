package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// requestInterval is the time between two requests of a load.
	requestInterval = 50 * time.Millisecond
	requestTimeout  = 10 * time.Second
)

// load is a sender of requests to the Knative Service, one after the other. It ends with the first
// request that fails.
type load struct {
	url, host string
	sender    sync.WaitGroup

	mu sync.Mutex
	// answers are the Revisions that answered since the last take.
	answers []string
	err     error
}

// sendRequests sends requests to the Service until the context ends.
func (s *steps) sendRequests(ctx context.Context) (*load, error) {
	ingress, err := s.kube.CoreV1().Services("breakwater-ingress").Get(ctx, "private", metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("find the ingress of the cluster: %w", err)
	}
	l := &load{url: "http://" + ingress.Spec.ClusterIP + "/double/health", host: "web." + services + ".svc.cluster.local"}
	l.sender.Go(func() {
		for ctx.Err() == nil {
			revision, err := l.send(ctx)
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

// send returns the Revision that answers a request.
func (l *load) send(ctx context.Context) (revision string, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url, nil)
	if err != nil {
		return "", err
	}
	request.Host = l.host
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }() // the body was read
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

// add records an answer, and reports whether there was one.
func (l *load) add(revision string, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.err = fmt.Errorf("request to %s: %w", l.host, err)
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

// onlyLast reports whether a Revision answered the last n requests.
func (l *load) onlyLast(n int, revision string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.answers) >= n &&
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
