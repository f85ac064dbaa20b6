// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/breakwater-dev/breakwater/test/shop/load"
	"github.com/breakwater-dev/breakwater/test/shop/service"
)

// probeInterval is the time between two probes of a pod; before its first
// Ready it is firstProbe.
const (
	probeInterval = 5 * time.Second
	firstProbe    = 500 * time.Millisecond
)

// nodes are the names of the nodes on which pods seem to run.
var nodes = []string{"node-1", "node-2", "node-3"}

// shop is the shop of one release: its pods, and the files with the endpoints of
// its services.
type shop struct {
	release Release
	program string
	folder  string
	network string // the first three numbers of its pods' addresses
	changed func() // a pod was added or removed
	client  *http.Client

	mu      sync.Mutex
	pods    []*pod
	stops   map[*pod]func()
	number  int
	running sync.WaitGroup
}

// hash is the pod-template-hash of a version.
func hash(version string) string {
	return map[string]string{"v1": "6d4cf56db6", "v2": "7b5d4f9c88"}[version]
}

// start starts a pod of a service.
func (s *shop) start(ctx context.Context, name, version, node string, flags ...string) *pod {
	s.mu.Lock()
	s.number++
	suffix := make([]byte, 5)
	for i := range suffix {
		suffix[i] = "bcdfghjklmnpqrstvwxz2456789"[rand.IntN(27)]
	}
	p := &pod{namespace: s.release.Namespace, service: name, version: version, node: node, program: s.program, waiting: "ContainerCreating",
		name: fmt.Sprintf("%s-%s-%s", name, hash(version), suffix), ip: fmt.Sprintf("%s.%d", s.network, s.number)}
	p.args = append([]string{"--service", name, "--pod", p.name, "--listen", p.ip + ":8080", "--errors", strconv.FormatFloat(s.release.Errors, 'f', -1, 64)}, flags...)
	if n := s.release.Neighbour(); n != "" {
		for _, other := range []string{n, s.release.Service} {
			if other != name && other != "front" {
				p.args = append(p.args, "--"+other, "file://"+s.endpointsFile(other))
			}
		}
	}
	ctx, stop := context.WithCancel(ctx)
	s.pods = append(s.pods, p)
	s.stops[p] = stop
	s.mu.Unlock()
	s.changed()
	s.running.Go(func() { p.run(ctx) })
	s.running.Go(func() { s.watch(ctx, p) })
	return p
}

// remove takes a pod out of the endpoints, then ends it.
func (s *shop) remove(p *pod) {
	s.mu.Lock()
	s.pods = slices.DeleteFunc(s.pods, func(other *pod) bool { return other == p })
	stop := s.stops[p]
	s.mu.Unlock()
	s.writeEndpoints(p.service)
	s.changed()
	// Callers read the endpoints again within a second.
	time.AfterFunc(2*time.Second, stop)
}

// watch probes a pod and keeps the endpoints of its service current.
func (s *shop) watch(ctx context.Context, p *pod) {
	for {
		if p.probe(ctx, s.client) {
			s.writeEndpoints(p.service)
		}
		distance := probeInterval
		p.locked(func() {
			if p.wasReady.IsZero() {
				distance = firstProbe
			}
		})
		select {
		case <-ctx.Done():
			return
		case <-time.After(distance):
		}
	}
}

func (s *shop) endpointsFile(name string) string { return filepath.Join(s.folder, name) }

func (s *shop) writeEndpoints(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []byte
	for _, p := range s.pods {
		p.locked(func() {
			if p.service == name && p.ready && !p.hidden {
				lines = fmt.Appendf(lines, "%s %s:8080\n", p.name, p.ip)
			}
		})
	}
	if err := replaceFile(s.endpointsFile(name), lines); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
	}
}

// of returns the pods of a service and version; an empty version is any.
func (s *shop) of(name, version string) []*pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*pod
	for _, p := range s.pods {
		if p.service == name && (version == "" || p.version == version) {
			list = append(list, p)
		}
	}
	return list
}

// load calls the entry of the shop until the context ends.
func (s *shop) load(ctx context.Context, meters metric.MeterProvider, profile load.Profile, seed uint64) error {
	target := "file://" + s.endpointsFile(s.release.Entry())
	client, err := service.NewClient(meters, "load", s.release.Entry(), target,
		attribute.String("namespace", s.release.Namespace), attribute.String("pod", "load-0"))
	if err != nil {
		return err
	}
	generator, err := load.New(client, profile, seed)
	if err != nil {
		return fmt.Errorf("%s: %w", s.release.Namespace, err)
	}
	generator.Run(ctx)
	return nil
}

// slow stops and continues processes 8 times a second for a while, as a node
// does that has too little CPU time.
func slow(ctx context.Context, length time.Duration, list func() []*pod) {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	for ctx.Err() == nil {
		stopped := list()
		for _, p := range stopped {
			p.signal(syscall.SIGSTOP)
		}
		pause(ctx, 40*time.Millisecond)
		for _, p := range stopped {
			p.signal(syscall.SIGCONT)
		}
		pause(ctx, 85*time.Millisecond)
	}
}

// pause waits, or returns false early when the context ends.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
