// Package authlimit bounds how often an address is refused, because each refusal
// costs a review of a token at the API server. Who is refused too often is not
// heard for a while; who is not refused is never held up.
package authlimit

import (
	"math"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/time/rate"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
)

const (
	// addresses bounds how many are remembered; the one that was refused longest
	// ago is forgotten first.
	maxAddresses = 10_000
	// remembered is for how long after its last refusal an address is.
	addressTTL = 10 * time.Minute
)

// Limit bounds refusals by address.
type Limiter struct {
	perMinute func() float64
	clock     clock.PassiveClock
	mu        sync.Mutex
	limiters  *utilcache.LRUExpireCache // address to *rate.Limiter
}

// New returns a Limit. perMinute is how many refusals a minute an address may
// have, and how many at once; it may change, and 0 is any number.
func New(perMinute func() float64, c clock.PassiveClock) *Limiter {
	return &Limiter{perMinute: perMinute, clock: c, limiters: utilcache.NewLRUExpireCacheWithClock(maxAddresses, c)}
}

// Wait is for how long an address is not heard; 0 when it is.
func (l *Limiter) RetryAfter(address string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	one, found := l.limiters.Get(address)
	if !found || l.perMinute() == 0 {
		return 0
	}
	limiter := one.(*rate.Limiter)
	if missing := 1 - limiter.TokensAt(l.clock.Now()); missing > 0 {
		return time.Duration(missing / float64(limiter.Limit()) * float64(time.Second))
	}
	return 0
}

// Refused counts a refusal. Those that were under way together count all, also
// above the limit: the address is not heard for longer then.
func (l *Limiter) RecordRejection(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	allowed, now := l.perMinute(), l.clock.Now()
	if allowed == 0 {
		return
	}
	limit, burst := rate.Limit(allowed/60), int(math.Ceil(allowed))
	limiter := rate.NewLimiter(limit, burst)
	if one, found := l.limiters.Get(address); found {
		limiter = one.(*rate.Limiter)
	}
	limiter.SetLimitAt(now, limit)
	limiter.SetBurstAt(now, burst)
	limiter.ReserveN(now, 1)
	l.limiters.Add(address, limiter, addressTTL)
}

// Middleware answers 429 to whom is not heard, and counts answers of 401 and 403.
func (l *Limiter) Middleware(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		address, _, err := net.SplitHostPort(c.Request().RemoteAddr)
		if err != nil {
			address = c.Request().RemoteAddr
		}
		if wait := l.RetryAfter(address); wait > 0 {
			c.Response().Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
			return echo.NewHTTPError(http.StatusTooManyRequests, "your address was refused too often; send a valid token after a while")
		}
		if err := next(c); err != nil {
			c.Error(err) // now, so that the status is known
		}
		if status := c.Response().Status; status == http.StatusUnauthorized || status == http.StatusForbidden {
			l.RecordRejection(address)
		}
		return nil
	}
}
