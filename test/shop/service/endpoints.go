// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// Endpoint is one pod behind a service.
type Endpoint struct{ Pod, Address string }

// endpointsFile reads the endpoints of a service from a file with a line "pod
// address" for each, again every second, as kube-proxy follows the API server.
type endpointsFile struct {
	path string
	now  func() time.Time

	mu   sync.Mutex
	read time.Time
	list []Endpoint
}

func (f *endpointsFile) pick() (Endpoint, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.now(); now.Sub(f.read) >= time.Second {
		list, err := readEndpoints(f.path)
		if err != nil {
			return Endpoint{}, err
		}
		f.list, f.read = list, now
	}
	if len(f.list) == 0 {
		return Endpoint{}, errNoEndpoints
	}
	return f.list[rand.IntN(len(f.list))], nil
}

var errNoEndpoints = errors.New("the service has no endpoints")

func readEndpoints(path string) ([]Endpoint, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	var list []Endpoint
	for lines := bufio.NewScanner(file); lines.Scan(); {
		pod, address, ok := strings.Cut(lines.Text(), " ")
		if !ok {
			return nil, fmt.Errorf("%s: line %q is not \"pod address\"", path, lines.Text())
		}
		list = append(list, Endpoint{pod, address})
	}
	return list, nil
}

// pods sends each request to a pod behind its service. It runs below the
// instrumentation, so the metrics of a call have the name of the service.
type pods struct {
	next http.RoundTripper
	file *endpointsFile
}

func (p *pods) RoundTrip(r *http.Request) (*http.Response, error) {
	e, err := p.file.pick()
	if err != nil {
		return nil, err
	}
	if seen, ok := r.Context().Value(podKey{}).(*string); ok {
		*seen = e.Pod
	}
	sent := r.Clone(r.Context())
	sent.URL.Host = e.Address
	return p.next.RoundTrip(sent)
}

// podKey is the key of a string in the context of a call that receives the
// name of the pod that was called.
type podKey struct{}

func withPod(ctx context.Context) (context.Context, *string) {
	pod := new(string)
	return context.WithValue(ctx, podKey{}, pod), pod
}
