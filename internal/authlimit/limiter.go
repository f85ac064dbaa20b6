// Package authlimit rate-limits requests that may cost the API server a TokenReview. The middleware
// limits addresses after failed authentication: an address that sends too many requests without a valid
// token is answered 429 for a while. Other addresses are never limited. A service may limit other keys,
// such as tokens.
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
	// maxKeys bounds the cache. The key with the oldest request is evicted first.
	maxKeys = 10_000
	// keyTTL is how long a key is cached after its last counted request.
	keyTTL = 10 * time.Minute
)

// Limiter counts the requests of each key, for example an address. While a key has too many, all its requests are
// answered 429.
type Limiter struct {
	perMinute func() float64
	clock     clock.PassiveClock
	mu        sync.Mutex
	limiters  *utilcache.LRUExpireCache // key to *rate.Limiter
}

// New returns a Limiter. perMinute is how many requests of a key may count per minute, and the burst. It is
// read for each request; 0 disables the limit.
func New(perMinute func() float64, c clock.PassiveClock) *Limiter {
	return &Limiter{perMinute: perMinute, clock: c, limiters: utilcache.NewLRUExpireCacheWithClock(maxKeys, c)}
}

// RetryAfter returns how long requests of the key are answered 429; 0 if they
// are not.
func (l *Limiter) RetryAfter(key string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	cached, found := l.limiters.Get(key)
	if !found || l.perMinute() == 0 {
		return 0
	}
	limiter := cached.(*rate.Limiter)
	if missing := 1 - limiter.TokensAt(l.clock.Now()); missing > 0 {
		return time.Duration(missing / float64(limiter.Limit()) * float64(time.Second))
	}
	return 0
}

// Record counts a request. Concurrent ones above the limit count too and extend the time in which the
// key is answered 429.
func (l *Limiter) Record(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	allowed, now := l.perMinute(), l.clock.Now()
	if allowed == 0 {
		return
	}
	limit, burst := rate.Limit(allowed/60), int(math.Ceil(allowed))
	limiter := rate.NewLimiter(limit, burst)
	if cached, found := l.limiters.Get(key); found {
		limiter = cached.(*rate.Limiter)
	}
	limiter.SetLimitAt(now, limit)
	limiter.SetBurstAt(now, burst)
	limiter.ReserveN(now, 1)
	l.limiters.Add(key, limiter, keyTTL)
}

// Check returns an answer 429 with Retry-After and the message if requests of the key are limited.
func (l *Limiter) Check(c echo.Context, key, message string) error {
	wait := l.RetryAfter(key)
	if wait == 0 {
		return nil
	}
	c.Response().Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	return echo.NewHTTPError(http.StatusTooManyRequests, message)
}

// Count counts a request of the key, or returns the answer of Check.
func (l *Limiter) Count(c echo.Context, key, message string) error {
	if err := l.Check(c, key, message); err != nil {
		return err
	}
	l.Record(key)
	return nil
}

// Middleware answers 429 to limited addresses, also with a valid token, and counts requests that are answered 401.
// Other statuses do not count, because many pods or users may share an address, and one of them may request what it
// is not allowed to do.
func (l *Limiter) Middleware(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		address, _, err := net.SplitHostPort(c.Request().RemoteAddr)
		if err != nil {
			address = c.Request().RemoteAddr
		}
		if err := l.Check(c, address, "your address sent too many requests without a valid token; retry later with a valid token"); err != nil {
			return err
		}
		if err := next(c); err != nil {
			c.Error(err) // writes the response, so that its status is known
		}
		if c.Response().Status == http.StatusUnauthorized {
			l.Record(address)
		}
		return nil
	}
}
