package callback

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/breakwater-dev/breakwater/test/pipenetwork"
)

func TestTheMoreBodiesWaitTheLessTimeHasEach(t *testing.T) {
	for _, test := range []struct {
		waiting int
		want    time.Duration
	}{
		{0, bodyTimeout},
		{1, plannedWait},
		{places, plannedWait},
		{2 * places, plannedWait / 2},
		{1000, 128 * time.Millisecond},
	} {
		if got := arrivalTime(test.waiting); got != test.want {
			t.Errorf("%d wait: %s, want %s", test.waiting, got, test.want)
		}
	}
}

// readLarge reads a body of which content arrives; it ends if all arrives.
func readLarge(t *testing.T, l *largeBodies, content string, ends bool) ([]byte, func(), error) {
	t.Helper()
	w, r := pipenetwork.Body(t, content, ends)
	return l.read(t.Context(), w, r)
}

func TestALargeBodyGetsItsTurnWhileAThousandNeverEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLargeBodies()
		var strangers sync.WaitGroup
		for range 1000 {
			strangers.Go(func() {
				if _, _, err := readLarge(t, l, "x", false); err == nil {
					t.Error("a body that does not end was read")
				}
			})
		}
		synctest.Wait()
		if len(l.arriving) != places || l.waiting.Len() != 1000-places {
			t.Errorf("%d arrive and %d wait", len(l.arriving), l.waiting.Len())
		}
		began, content := time.Now(), strings.Repeat("x", maxBody)
		body, discard, err := readLarge(t, l, content, true)
		if took := time.Since(began); err != nil || string(body) != content || took > plannedWait+arrivalTime(1000) {
			t.Fatalf("a body of %d bytes: %d, %v after %s", maxBody, len(body), err, took)
		}
		discard()
		strangers.Wait()
		if l.free != places || l.waiting.Len() != 0 || len(l.arriving) != 0 {
			t.Errorf("after all: %d free, %d waiting, %d arriving", l.free, l.waiting.Len(), len(l.arriving))
		}
	})
}

func TestALargeBodyWaitsWhileCompleteOnesAreHandled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLargeBodies()
		var discards []func()
		for range places {
			_, discard, err := readLarge(t, l, "complete", true)
			if err != nil {
				t.Fatal(err)
			}
			discards = append(discards, discard)
		}
		if _, _, err := readLarge(t, l, "too late", true); !errors.Is(err, errBusy) {
			t.Errorf("while none ends: %v, want %v", err, errBusy)
		}
		next := make(chan error, 1)
		go func() {
			_, _, err := readLarge(t, l, "next", true)
			next <- err
		}()
		synctest.Wait()
		discards[0]()
		if err := <-next; err != nil {
			t.Errorf("after one has ended: %v", err)
		}
	})
}

func TestABodyThatIsTooLargeIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLargeBodies()
		if _, _, err := readLarge(t, l, strings.Repeat("x", maxBody+1), false); !errors.Is(err, errTooLarge) {
			t.Errorf("got %v", err)
		}
		if l.free != places {
			t.Errorf("%d places are free", l.free)
		}
	})
}
