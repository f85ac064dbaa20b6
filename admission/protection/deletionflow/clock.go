package deletionflow

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// CheckEvery is the interval between two checks of the clock.
const CheckEvery = 5 * time.Second

// checkTimeout limits the round trip to the API server, and so the uncertainty of
// its time. The round trip never makes equal clocks seem different.
const checkTimeout = 2 * time.Second

// Clock checks that the local clock is close to the API server's. Otherwise
// deletions would be counted at the wrong time and must be denied.
type Clock struct {
	clock.PassiveClock
	// Client is an authenticated client; URL is a path of the API server that every
	// user may read.
	Client *http.Client
	URL    string
	// Skew is how far the clocks may differ.
	Skew time.Duration

	off atomic.Pointer[error]
}

// Check compares the clocks. An unreachable API server changes nothing: then no
// deletion can be committed either.
func (c *Clock) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL, nil)
	if err != nil {
		return fmt.Errorf("create request for the time: %w", err)
	}
	sent := c.Now()
	resp, err := c.Client.Do(req)
	if err != nil {
		return fmt.Errorf("request the time: %w", err)
	}
	received := c.Now()
	if err := resp.Body.Close(); err != nil {
		return fmt.Errorf("close the response: %w", err)
	}
	date, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return fmt.Errorf("parse the time of the API server: %w", err)
	}
	if mayDiffer(sent, received, date, c.Skew) {
		wrong := fmt.Errorf("the clock of this replica may differ by more than %s from the API server's: local time %s, server time %s",
			c.Skew, received.UTC().Format(time.RFC3339), date.UTC().Format(time.RFC3339))
		c.off.Store(&wrong)
		return wrong
	}
	c.off.Store(nil)
	return nil
}

// SkewError says how the clock is wrong; nil if it is not.
func (c *Clock) SkewError() error {
	if wrong := c.off.Load(); wrong != nil {
		return *wrong
	}
	return nil
}

// mayDiffer reports whether the clocks may differ by more than skew: the response was
// created between sent and received, within the second that begins at date.
func mayDiffer(sent, received, date time.Time, skew time.Duration) bool {
	return received.Sub(date) > skew || date.Add(time.Second).Sub(sent) > skew
}
