// Package checkedclock compares the local clock with the API server's.
package checkedclock

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// checkTimeout limits the round trip to the API server, and so the uncertainty of
// its time. The round trip never makes equal clocks seem different.
const checkTimeout = 2 * time.Second

// Clock checks that the local clock is close to the API server's.
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

// New returns the real clock, to be compared with that of the API server of config. skew is how
// far they may differ.
func New(config *rest.Config, skew time.Duration) (*Clock, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("create HTTP client of the clock: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("find URL of the API server: %w", err)
	}
	return &Clock{PassiveClock: clock.RealClock{}, Client: client, URL: base.JoinPath("version").String(), Skew: skew}, nil
}

// Check compares the clocks. It returns an error if they may differ too much or cannot be
// compared. An unreachable API server does not change SkewError: then no deletion can be
// committed either.
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

// SkewError says how the clock was wrong when it was last compared; nil if it was not.
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
