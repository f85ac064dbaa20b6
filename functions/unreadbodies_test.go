package functions

import (
	"container/list"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/breakwater-dev/breakwater/test/pipenetwork"
)

// readBody reads a body of which the first byte arrives; it ends there if complete.
func readBody(t *testing.T, b *unreadBodies, complete bool) error {
	t.Helper()
	_, err := b.read(pipenetwork.Body(t, "x", complete))
	return err
}

// Every pod can send requests to a function.
func TestUnreadBodiesAreBoundedAndKeepNoEventWaiting(t *testing.T) {
	const strangers = maxUnread + 44
	synctest.Test(t, func(t *testing.T) {
		b, began := &unreadBodies{arriving: list.New()}, time.Now()
		var ends []chan error
		for range strangers {
			end := make(chan error, 1)
			ends = append(ends, end)
			go func() { end <- readBody(t, b, false) }()
			synctest.Wait()
		}
		for i, end := range ends[:strangers-maxUnread] {
			select {
			case err := <-end:
				if !errors.Is(err, errDropped) {
					t.Errorf("body %d: %v, want %v", i, err, errDropped)
				}
			default:
				t.Fatalf("body %d of %d was not dropped", i, strangers)
			}
		}
		if err := readBody(t, b, true); err != nil || time.Since(began) != 0 {
			t.Errorf("an event: %v after %s", err, time.Since(began))
		}
		dropped := <-ends[strangers-maxUnread] // for the event
		if !errors.Is(dropped, errDropped) {
			t.Errorf("the oldest body: %v, want %v", dropped, errDropped)
		}
		for i, end := range ends[strangers-maxUnread+1:] {
			if err := <-end; err == nil || errors.Is(err, errDropped) {
				t.Errorf("body %d of those that are left: %v, want a timeout", i, err)
			}
		}
		if took := time.Since(began); took != bodyTimeout || b.arriving.Len() != 0 {
			t.Errorf("%d arrive after %s, want none after %s", b.arriving.Len(), took, bodyTimeout)
		}
	})
}
