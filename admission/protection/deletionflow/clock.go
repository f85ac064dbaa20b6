package deletionflow

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// CheckEvery is how often the clock is compared.
const CheckEvery = 5 * time.Second

// checkTimeout is how long the API server may take to tell its time: the longer
// it takes, the less is known. Clocks that agree never seem apart by it.
const checkTimeout = 2 * time.Second

// Clock knows whether this process' clock is near enough to the API server's:
// else windows would be counted at the wrong time, and nothing may be let through.
type Clock struct {
	clock.PassiveClock
	// Client is an authenticated client, URL an address of the API server that
	// everybody may read.
	Client *http.Client
	URL    string
	// Skew is how far the clocks may be apart.
	Skew time.Duration

	off atomic.Pointer[error]
}

// Check compares the clocks. That the API server cannot be asked changes
// nothing: then nothing can be committed either.
func (c *Clock) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL, nil)
	if err != nil {
		return fmt.Errorf("ask for the time: %w", err)
	}
	sent := c.Now()
	resp, err := c.Client.Do(req)
	if err != nil {
		return fmt.Errorf("ask for the time: %w", err)
	}
	received := c.Now()
	if err := resp.Body.Close(); err != nil {
		return fmt.Errorf("ask for the time: %w", err)
	}
	date, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return fmt.Errorf("read the time of the API server: %w", err)
	}
	if mayDiffer(sent, received, date, c.Skew) {
		wrong := fmt.Errorf("the clock of this replica may be more than %s from the API server's: here %s, there %s",
			c.Skew, received.UTC().Format(time.RFC3339), date.UTC().Format(time.RFC3339))
		c.off.Store(&wrong)
		return wrong
	}
	c.off.Store(nil)
	return nil
}

// Off returns what is wrong with the clock; nil: nothing.
func (c *Clock) Off() error {
	if wrong := c.off.Load(); wrong != nil {
		return *wrong
	}
	return nil
}

// apart says whether clocks may be further apart than allowed: the answer was
// made between sent and received, in the second that begins with date.
func mayDiffer(sent, received, date time.Time, skew time.Duration) bool {
	return received.Sub(date) > skew || date.Add(time.Second).Sub(sent) > skew
}
