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

func TestATargetThatIsNotFoundIsLookedUpAgainWithGrowingPauses(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
	lookUps := make(chan time.Time)
	target := NewTarget(clock, func(ctx context.Context) (Endpoint, error) {
		select {
		case lookUps <- clock.Now():
		case <-ctx.Done():
		}
		return Endpoint{}, errors.New("not there")
	})
	go target.run(t.Context())

	last := <-lookUps
	var pauses []time.Duration
	for range 10 {
		var now time.Time
		err := poll(t, func() bool {
			if clock.HasWaiters() {
				clock.Step(100 * time.Millisecond)
			}
			select {
			case now = <-lookUps:
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
	if pauses[0] > 2*firstLookup {
		t.Errorf("the first pause is %v", pauses[0])
	}
	for _, p := range pauses {
		if p > 2*lastLookup {
			t.Errorf("a pause of %v", p)
		}
	}
	if pauses[9] < lastLookup/2 {
		t.Errorf("the tenth pause is only %v", pauses[9])
	}
}

func TestAnAddressThatStaysKeepsItsConnections(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
	var url atomic.Value
	url.Store("http://one")
	var lookUps atomic.Int32
	target := NewTarget(clock, func(context.Context) (Endpoint, error) {
		lookUps.Add(1)
		return Endpoint{URL: url.Load().(string)}, nil
	})
	go target.run(t.Context())
	one, err := target.wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = poll(t, func() bool {
		clock.Step(recheck)
		return lookUps.Load() > 3
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := target.get().outlet; got != one {
		t.Error("the outlet was made anew")
	}
	url.Store("http://two")
	target.Poke()
	if err := poll(t, func() bool { return target.get().outlet.endpoint.URL == "http://two" }); err != nil {
		t.Error("a poke did not look up: ", err)
	}
}

func TestABrokerThatIsGoneIsNotSentTo(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
	var gone atomic.Bool
	target := NewTarget(clock, func(context.Context) (Endpoint, error) {
		if gone.Load() {
			return Endpoint{}, errors.New("gone")
		}
		return Endpoint{URL: "http://one"}, nil
	})
	go target.run(t.Context())
	if _, err := target.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone.Store(true)
	target.Poke()
	var none *NoBrokerError
	err := poll(t, func() bool {
		_, err := target.current(t.Context())
		return errors.As(err, &none)
	})
	if err != nil {
		t.Error(err)
	}
}
