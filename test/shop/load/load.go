// SPDX-License-Identifier: Apache-2.0

// Package load makes requests at random times with a bounded rate. Its targets are
// loopback addresses or, inside a cluster, private addresses: it must not be able to load
// servers on the internet. A private server outside of the cluster is not excluded.
package load

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"sync"
	"time"
)

// The bounds of a rate at the start and at any time, in requests per second, and of
// requests in flight.
const (
	MinStartRate = 0.2
	MaxRate      = 200
	maxInFlight  = 256
)

// Profile is the rate in requests per second at a time after the start.
type Profile func(since time.Duration) float64

// Constant always returns the same rate.
func Constant(rate float64) Profile { return func(time.Duration) float64 { return rate } }

// Ramp returns a rate that grows evenly from rate to factor times rate between
// two times.
func Ramp(rate, factor float64, from, to time.Duration) Profile {
	return func(since time.Duration) float64 {
		done := min(1, max(0, float64(since-from)/float64(to-from)))
		return rate * (1 + (factor-1)*done)
	}
}

// Wave returns a rate that swings around rate by a share of it, as over a day.
func Wave(rate, share float64, period time.Duration) Profile {
	return func(since time.Duration) float64 {
		return rate * (1 + share*math.Sin(2*math.Pi*float64(since)/float64(period)))
	}
}

// Caller makes one request. The caller itself counts its errors.
type Caller interface {
	Call(ctx context.Context, id int) error
}

// Generator makes the requests of one profile.
type Generator struct {
	caller  Caller
	profile Profile
	random  *rand.Rand
}

// New returns a generator. It fails if the profile starts with a rate outside
// MinStartRate and MaxRate; a later rate is at most MaxRate and at least a tenth of
// MinStartRate.
func New(caller Caller, profile Profile, seed uint64) (*Generator, error) {
	if rate := profile(0); rate < MinStartRate || rate > MaxRate {
		return nil, fmt.Errorf("rate is %v requests per second, use %v to %v", rate, MinStartRate, MaxRate)
	}
	return &Generator{caller: caller, profile: profile, random: rand.New(rand.NewPCG(seed, 1))}, nil
}

// Run makes requests as a Poisson process until the context ends, and waits for the
// running ones. If too many are running, a request is skipped.
func (g *Generator) Run(ctx context.Context) {
	start := time.Now()
	free := make(chan struct{}, maxInFlight)
	var running sync.WaitGroup
	defer running.Wait()
	for next := time.Duration(0); ; {
		rate := max(MinStartRate/10, min(MaxRate, g.profile(next)))
		next += time.Duration(g.random.ExpFloat64() / rate * float64(time.Second))
		timer := time.NewTimer(time.Until(start.Add(next)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		id := g.random.IntN(1 << 20)
		select {
		case free <- struct{}{}:
			running.Go(func() {
				_ = g.caller.Call(context.WithoutCancel(ctx), id)
				<-free
			})
		default:
		}
	}
}

// Allowed returns an error unless every address of the target is a loopback
// address or, inside a cluster, a private one.
func Allowed(ctx context.Context, target string) error {
	parsed, err := url.Parse(target)
	if err != nil || parsed.Hostname() == "" {
		return fmt.Errorf("target %q is not a URL with a host, for example http://front", target)
	}
	addresses, err := net.DefaultResolver.LookupIPAddr(ctx, parsed.Hostname())
	if err != nil {
		return fmt.Errorf("target %q: %w", target, err)
	}
	_, inCluster := os.LookupEnv("KUBERNETES_SERVICE_HOST")
	for _, a := range addresses {
		if !a.IP.IsLoopback() && (!inCluster || !a.IP.IsPrivate()) {
			return fmt.Errorf("target %q has address %s: only loopback addresses and, inside a cluster, private ones may be loaded", target, a.IP)
		}
	}
	return nil
}
