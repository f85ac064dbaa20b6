// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/breakwater-dev/breakwater/test/shop/fault"
)

const (
	// readyTimeout is how long the first new pod may take to be Ready.
	readyTimeout = 20 * time.Second
	// noise is how long a noisy node is slow: until the recording ends.
	noise = 10 * time.Minute
)

// begin starts the old pods and the neighbour.
func (s *shop) begin(ctx context.Context) {
	r := s.release
	for _, name := range []string{r.Service, r.Neighbour()} {
		if name != "" {
			s.writeEndpoints(name)
		}
	}
	if n := r.Neighbour(); n != "" {
		s.start(ctx, n, "v1", nodes[2])
	}
	for i := range r.Old {
		s.start(ctx, r.Service, "v1", s.node("v1", i))
	}
}

// node places pods evenly. In variant noisy-node, all new pods and one of three old
// pods are on the noisy node.
func (s *shop) node(version string, i int) string {
	if s.release.Variant == "noisy-node" && version == "v2" {
		return nodes[0]
	}
	return nodes[i%len(nodes)]
}

// do makes the release and returns the time at which the first new pod was
// Ready.
func (s *shop) do(ctx context.Context) (time.Time, error) {
	r := s.release
	old := s.of(r.Service, "v1")
	if r.Variant == "noisy-node" {
		go slow(ctx, noise, func() []*pod {
			return slices.DeleteFunc(s.of(r.Service, ""), func(p *pod) bool { return p.node != nodes[0] })
		})
	}
	var flags []string
	if r.Fault != fault.None {
		flags = append(flags, "--fault", string(r.Fault), "--fault-strength", string(r.Strength))
	}
	if r.Variant == "faster" {
		flags = append(flags, "--speed", "1.4")
	}
	effects, err := fault.EffectsOf(r.Fault, r.Strength)
	if err != nil {
		return time.Time{}, err
	}
	for i := range r.New {
		p := s.start(ctx, r.Service, "v2", s.node("v2", i), flags...)
		p.locked(func() { p.hidden = effects.NoRequests })
	}
	at, err := s.waitReady(ctx)
	if err != nil {
		return at, err
	}
	for _, p := range old[r.Keep:] {
		s.remove(p)
	}
	switch r.Variant {
	case "slow-service":
		if pause(ctx, time.Minute) {
			slow(ctx, 40*time.Second, func() []*pod { return s.of(r.Service, "") })
		}
	case "restart-of-old":
		if pause(ctx, time.Minute) {
			old[0].signal(syscall.SIGKILL)
		}
	}
	return at, nil
}

func (s *shop) waitReady(ctx context.Context) (time.Time, error) {
	for deadline := time.Now().Add(readyTimeout); time.Now().Before(deadline); {
		for _, p := range s.of(s.release.Service, "v2") {
			var at time.Time
			p.locked(func() { at = p.wasReady })
			if !at.IsZero() {
				return at, nil
			}
		}
		if !pause(ctx, 100*time.Millisecond) {
			return time.Time{}, ctx.Err()
		}
	}
	return time.Time{}, fmt.Errorf("%s: %w", s.release.Namespace, errNotReady)
}

var errNotReady = errors.New("no new pod became Ready")
