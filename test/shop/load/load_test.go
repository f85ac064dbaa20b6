// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestOnlyLoopbackAddressesAreLoadedOutsideOfACluster(t *testing.T) {
	for target, allowed := range map[string]bool{
		"http://127.77.1.1:8080":   true,
		"http://[::1]:8080":        true,
		"http://10.0.0.1":          false,
		"http://192.0.2.1":         false,
		"127.0.0.1:8080":           false,
		"http://localhost.invalid": false,
	} {
		if err := Allowed(context.Background(), target); (err == nil) != allowed {
			t.Errorf("%s: %v", target, err)
		}
	}
}

func TestServicesAreLoadedInsideACluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	for target, allowed := range map[string]bool{"http://10.96.0.17": true, "http://192.0.2.1": false} {
		if err := Allowed(context.Background(), target); (err == nil) != allowed {
			t.Errorf("%s: %v", target, err)
		}
	}
}

func TestARateOutsideTheBoundsIsRejected(t *testing.T) {
	for rate, allowed := range map[float64]bool{0.1: false, 0.2: true, 200: true, 201: false} {
		if _, err := New(nil, Constant(rate), 1); (err == nil) != allowed {
			t.Errorf("%v: %v", rate, err)
		} else if err != nil && !strings.Contains(err.Error(), "use 0.2 to 200") {
			t.Error(err)
		}
	}
}

func TestTheProfilesChangeTheRate(t *testing.T) {
	ramp := Ramp(10, 3, time.Minute, 3*time.Minute)
	wave := Wave(10, 0.5, 4*time.Minute)
	for tc, c := range map[string]struct{ got, want float64 }{
		"before the ramp": {ramp(0), 10},
		"half way":        {ramp(2 * time.Minute), 20},
		"after the ramp":  {ramp(time.Hour), 30},
		"wave, start":     {wave(0), 10},
		"wave, crest":     {wave(time.Minute), 15},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", tc, c.got, c.want)
		}
	}
}

// blocked never answers until it is told to.
type blocked struct {
	calls atomic.Int64
	enter chan struct{}
	end   chan struct{}
}

func (b *blocked) Call(context.Context, int) error {
	b.calls.Add(1)
	b.enter <- struct{}{}
	<-b.end
	return nil
}

func TestRequestsInFlightAreBounded(t *testing.T) {
	caller := &blocked{enter: make(chan struct{}, 2*maxInFlight), end: make(chan struct{})}
	g, err := New(caller, func(since time.Duration) float64 { return MaxRate }, 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { g.Run(ctx); close(done) }()
	for range maxInFlight {
		<-caller.enter
	}
	stop()
	close(caller.end)
	<-done
	if n := caller.calls.Load(); n != maxInFlight {
		t.Errorf("%d calls were made", n)
	}
}
