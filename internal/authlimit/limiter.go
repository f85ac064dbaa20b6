// Package authlimit rate-limits addresses after failed authentication, because
// an attempt may cost the API server a TokenReview. An address that sends too many
// requests without a valid token is answered 429 for a while. Other addresses are
// never limited.
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
	// maxAddresses bounds the cache. The address with the oldest request is evicted first.
	maxAddresses = 10_000
	// addressTTL is how long an address is cached after its last answer 401.
	addressTTL = 10 * time.Minute
)

// Limiter counts the requests of each address that are answered 401. While an address has too many,
// all its requests are answered 429, also with a valid token. Other statuses do not count, because many pods or users may share an address, and one
// of them may request what it is not allowed to do.
type Limiter struct {
	perMinute func() float64
	clock     clock.PassiveClock
	mu        sync.Mutex
	limiters  *utilcache.LRUExpireCache // address to *rate.Limiter
}

// New returns a Limiter. perMinute is how many requests of an address may be
// answered 401 per minute, and the burst. It is read for each request; 0 disables
// the limit.
func New(perMinute func() float64, c clock.PassiveClock) *Limiter {
	return &Limiter{perMinute: perMinute, clock: c, limiters: utilcache.NewLRUExpireCacheWithClock(maxAddresses, c)}
}

// RetryAfter returns how long requests of the address are answered 429; 0 if they
// are not.
func (l *Limiter) RetryAfter(address string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	cached, found := l.limiters.Get(address)
	if !found || l.perMinute() == 0 {
		return 0
	}
	limiter := cached.(*rate.Limiter)
	if missing := 1 - limiter.TokensAt(l.clock.Now()); missing > 0 {
		return time.Duration(missing / float64(limiter.Limit()) * float64(time.Second))
	}
	return 0
}

// RecordUnauthenticated counts a request that was answered 401. Concurrent ones above the limit
// count too and extend the time in which the address is answered 429.
func (l *Limiter) RecordUnauthenticated(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	allowed, now := l.perMinute(), l.clock.Now()
	if allowed == 0 {
		return
	}
	limit, burst := rate.Limit(allowed/60), int(math.Ceil(allowed))
	limiter := rate.NewLimiter(limit, burst)
	if cached, found := l.limiters.Get(address); found {
		limiter = cached.(*rate.Limiter)
	}
	limiter.SetLimitAt(now, limit)
	limiter.SetBurstAt(now, burst)
	limiter.ReserveN(now, 1)
	l.limiters.Add(address, limiter, addressTTL)
}

// Middleware answers 429 to limited addresses, and counts unauthenticated requests.
func (l *Limiter) Middleware(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		address, _, err := net.SplitHostPort(c.Request().RemoteAddr)
		if err != nil {
			address = c.Request().RemoteAddr
		}
		if wait := l.RetryAfter(address); wait > 0 {
			c.Response().Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
			return echo.NewHTTPError(http.StatusTooManyRequests, "your address sent too many requests without a valid token; retry later with a valid token")
		}
		if err := next(c); err != nil {
			c.Error(err) // writes the response, so that its status is known
		}
		if c.Response().Status == http.StatusUnauthorized {
			l.RecordUnauthenticated(address)
		}
		return nil
	}
}
