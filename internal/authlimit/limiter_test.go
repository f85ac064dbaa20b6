package authlimit

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	clocktest "k8s.io/utils/clock/testing"
)

func TestAnAddressWithTooManyUnauthenticatedRequestsIsLimited(t *testing.T) {
	clock := clocktest.NewFakePassiveClock(time.Unix(1<<30, 0))
	allowed := 3.0
	l := New(func() float64 { return allowed }, clock)
	reviews := 0
	e := echo.New()
	e.Use(l.Middleware)
	e.GET("/", func(c echo.Context) error {
		reviews++
		switch c.Request().Header.Get("Authorization") {
		case "good":
			return c.NoContent(http.StatusOK)
		case "other":
			return echo.NewHTTPError(http.StatusForbidden)
		}
		return echo.NewHTTPError(http.StatusUnauthorized)
	})
	ask := func(address, token string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = address
		r.Header.Set("Authorization", token)
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		return w
	}
	for range 100 {
		if w := ask("10.0.0.1:1", "good"); w.Code != http.StatusOK {
			t.Fatalf("an address without an answer 401: status %d", w.Code)
		}
	}
	for range 100 {
		if w := ask("10.0.0.1:1", "other"); w.Code != http.StatusForbidden {
			t.Fatalf("an address with forbidden requests: status %d", w.Code)
		}
	}
	for i, token := range []string{"bad", "bad", "bad"} {
		if w := ask(fmt.Sprintf("10.0.0.1:%d", 2+i), token); w.Code == http.StatusTooManyRequests {
			t.Errorf("unauthenticated request %d: status 429 below the limit", i+1)
		}
	}
	reviews = 0
	if w := ask("10.0.0.1:9", "good"); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "20" || reviews != 0 {
		t.Errorf("above the limit: status %d, %d reviews, Retry-After %q", w.Code, reviews, w.Header().Get("Retry-After"))
	}
	if w := ask("[fd00::2]:9", "good"); w.Code != http.StatusOK {
		t.Errorf("another address: status %d", w.Code)
	}
	clock.SetTime(clock.Now().Add(20 * time.Second))
	if w := ask("10.0.0.1:9", "good"); w.Code != http.StatusOK {
		t.Errorf("after Retry-After: status %d", w.Code)
	}
	if w := ask("10.0.0.1:9", "bad"); w.Code != http.StatusUnauthorized {
		t.Errorf("an invalid token after Retry-After: status %d", w.Code)
	}
	if w := ask("10.0.0.1:9", "good"); w.Code != http.StatusTooManyRequests {
		t.Errorf("after another unauthenticated request: status %d", w.Code)
	}
	allowed = 0
	if w := ask("10.0.0.1:9", "good"); w.Code != http.StatusOK {
		t.Errorf("without a limit: status %d", w.Code)
	}
}

func TestConcurrentRequestsAboveTheLimitCount(t *testing.T) {
	clock := clocktest.NewFakePassiveClock(time.Unix(1<<30, 0))
	l := New(func() float64 { return 60 }, clock)
	for range 60 + 30 {
		l.Record("10.0.0.1")
	}
	if wait := l.RetryAfter("10.0.0.1"); wait != 31*time.Second {
		t.Errorf("limited for %s, want 31s", wait)
	}
	clock.SetTime(clock.Now().Add(keyTTL + time.Second))
	if wait := l.RetryAfter("10.0.0.1"); wait != 0 {
		t.Errorf("limited for %s after keyTTL", wait)
	}
}

func TestTheNumberOfCachedKeysIsBounded(t *testing.T) {
	l := New(func() float64 { return 1 }, clocktest.NewFakePassiveClock(time.Unix(1<<30, 0)))
	for n := range maxKeys + 1 {
		l.Record(fmt.Sprint(n))
	}
	if l.RetryAfter("0") != 0 || l.RetryAfter("1") == 0 || len(l.limiters.Keys()) != maxKeys {
		t.Errorf("%d keys are cached", len(l.limiters.Keys()))
	}
}
