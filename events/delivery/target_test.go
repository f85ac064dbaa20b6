package delivery

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	clocktesting "k8s.io/utils/clock/testing"
)

func poll(t *testing.T, holds func() bool) error {
	t.Helper()
	return wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { return holds(), nil })
}

func TestFailedLookupsAreRetriedWithBackoff(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
	lookups := make(chan time.Time)
	target := NewTarget(clock, func(ctx context.Context) (Endpoint, error) {
		select {
		case lookups <- clock.Now():
		case <-ctx.Done():
		}
		return Endpoint{}, errors.New("not there")
	})
	go target.run(t.Context())

	last := <-lookups
	var pauses []time.Duration
	for range 10 {
		var now time.Time
		err := poll(t, func() bool {
			if clock.HasWaiters() {
				clock.Step(100 * time.Millisecond)
			}
			select {
			case now = <-lookups:
				return true
			default:
				return false
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		pauses = append(pauses, now.Sub(last))
		last = now
	}
	if pauses[0] > 2*minRetryInterval {
		t.Errorf("the first pause is %v", pauses[0])
	}
	for _, p := range pauses {
		if p > 2*maxRetryInterval {
			t.Errorf("a pause of %v", p)
		}
	}
	if pauses[9] < maxRetryInterval/2 {
		t.Errorf("the tenth pause is only %v", pauses[9])
	}
}

func TestAnUnchangedAddressKeepsItsConnections(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
	var url atomic.Value
	url.Store("http://one")
	var lookups atomic.Int32
	target := NewTarget(clock, func(context.Context) (Endpoint, error) {
		lookups.Add(1)
		return Endpoint{URL: url.Load().(string)}, nil
	})
	go target.run(t.Context())
	one, err := target.wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = poll(t, func() bool {
		clock.Step(refreshInterval)
		return lookups.Load() > 3
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := target.get().client; got != one {
		t.Error("the client was replaced")
	}
	url.Store("http://two")
	target.Refresh()
	if err := poll(t, func() bool { return target.get().client.endpoint.URL == "http://two" }); err != nil {
		t.Error("Refresh did not trigger a lookup: ", err)
	}
}

func TestADeletedBrokerGetsNoEvents(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
	var deleted atomic.Bool
	target := NewTarget(clock, func(context.Context) (Endpoint, error) {
		if deleted.Load() {
			return Endpoint{}, errors.New("deleted")
		}
		return Endpoint{URL: "http://one"}, nil
	})
	go target.run(t.Context())
	if _, err := target.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	deleted.Store(true)
	target.Refresh()
	var noBroker *NoBrokerError
	err := poll(t, func() bool {
		_, err := target.client(t.Context())
		return errors.As(err, &noBroker)
	})
	if err != nil {
		t.Error(err)
	}
}
