package altershield

import (
	"context"
	"testing"
	"time"
)

func TestACallWithAReservationDoesNotWaitAgain(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.QPS, c.Burst = 0.01, 2 })
	w.open(t)
	slot, err := w.client.Reserve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.client.StartOrder(slot.Context(t.Context()), StartOrder{OrderID: "o"}); err != nil {
		t.Errorf("the call with the reservation: %v", err)
	}
	if _, err := w.client.StartOrder(slot.Context(t.Context()), StartOrder{OrderID: "o"}); !IsThrottled(err) {
		t.Errorf("a second call with one slot: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := w.client.Reserve(ctx); !IsThrottled(err) {
		t.Errorf("a further slot: %v", err)
	}
}

func TestACanceledReservationIsGivenToTheNextCall(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.QPS, c.Burst = 0.01, 2 })
	w.open(t)
	slot, err := w.client.Reserve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slot.Cancel()
	slot.Cancel()
	for i, throttled := range []bool{false, true} {
		if _, err := w.client.StartOrder(t.Context(), StartOrder{OrderID: "o"}); IsThrottled(err) != throttled {
			t.Errorf("call %d: %v", i+1, err)
		}
	}
	var none *Reservation
	none.Cancel()
	if none.Context(t.Context()) != t.Context() {
		t.Error("no slot changes the context")
	}
}

func TestReplicasShareTheRateLimit(t *testing.T) {
	all := Config{QPS: 100, Burst: 2}
	for replicas, want := range map[int]Config{0: {QPS: 100, Burst: 2}, 1: {QPS: 100, Burst: 2}, 4: {QPS: 25, Burst: 1}} {
		if got := all.ShareOf(replicas); got != want {
			t.Errorf("of %d replicas each has %v", replicas, got)
		}
	}
}
