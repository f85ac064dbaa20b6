// Package lifecycle runs the state machine of applications: from Requested to
// Granted, Denied or Failed, then to Revoked or Leaked. A grant is due when it
// needs a step; the due grants of a provider are its queue. A transaction starts
// due steps in slots of the rate limit: it stores the intent, which is the idempotency
// key and the id of the run. The transaction that ends a step writes its result and
// when the grant is due again. If a process dies, its steps are due when their runs
// expire, and the calls are retried with the same keys.
//
// Read the files in this order: request, create, advance, dispatch, start, decide, call, finish,
// result, update (its committed wakes the waiting requests); then revoke.
package lifecycle

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/coalesce"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/ratelimit"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// RateLimiter reserves slots for calls to a provider; see package ratelimit.
type RateLimiter interface {
	Begin(tx store.Tx, provider string, limit api.RateLimit) (*ratelimit.Slots, error)
	Reserve(ctx context.Context, provider string, limit api.RateLimit, horizon time.Duration) (time.Time, error)
	Expired(at time.Time) bool
}

// Breaker is the circuit breaker of the providers.
type Breaker interface {
	// OpenFor returns how long the breaker stays open; zero if it is closed.
	OpenFor(provider string) time.Duration
	// DownSince returns when the breaker opened after the last successful call; zero
	// if it is closed.
	DownSince(provider string) time.Time
	// Do runs call unless the breaker is open. call reports success.
	Do(provider string, call func() bool) (called bool)
}

// Notifier is notified of changed applications.
type Notifier interface{ Notify(application string) }

// Metrics records metrics.
type Metrics interface {
	GrantState(provider, reason string, to api.State)
	Call(provider string, op provider.Op, r provider.Result, took time.Duration)
	LeakedGrantAtNewPod(permission string)
	// PodReportPage records a page of a report of existing pods; result is a PodReport constant.
	PodReportPage(cluster, result string)
}

// Clients returns the client of a provider.
type Clients interface {
	Client(p api.Provider) (provider.Client, error)
}

// Engine runs the state machine. All exported fields are required.
type Engine struct {
	Store    *store.Store
	Limiter  RateLimiter
	Breaker  Breaker
	Clients  Clients
	Clock    clock.Clock
	Random   func() float64
	Notifier Notifier
	Metrics  Metrics
	Log      *slog.Logger
	// ConcurrentCallsPerProvider is the number of concurrent calls to one provider, for each replica.
	ConcurrentCallsPerProvider int

	// requests, updates and background collect concurrent transactions.
	requests            coalesce.Queue[*request]
	updates, background coalesce.Queue[*update]
	// dispatcher is nil unless Run runs.
	dispatcher atomic.Pointer[dispatcher]
}

// ErrRevokeRequested is returned if the application is being revoked, or if the pod has ended.
var ErrRevokeRequested = errors.New("revocation was requested")

// ErrResetAfterRevocation is returned by Reset if the application is Revoked or Leaked: a reset
// does not confirm that the pod exists.
var ErrResetAfterRevocation = errors.New("the application is Revoked or Leaked")

// InvalidRequest names an invalid field of a request.
type InvalidRequest struct{ Field, Message string }

func (r InvalidRequest) Error() string { return r.Field + ": " + r.Message }

// writeStatus derives and writes the status of the application.
func (t *txn) writeStatus() {
	status := Derive(t.app.RevokeRequested, t.grants)
	if status.State != t.app.State {
		t.changes.AddHistory(api.HistoryEntry{Time: t.now, From: t.app.State, To: status.State, Attempt: t.app.Attempt,
			Reason: status.Reason, Message: status.Message, Who: t.user})
	}
	t.app.State, t.app.Reason, t.app.Message = status.State, status.Reason, status.Message
	t.app.Updated = t.now
	t.app.Version++
	t.changes.Update(t.app)
}

// writeGrant writes a grant and records a state change in the history.
func (t *txn) writeGrant(before, g store.Grant) {
	t.grants[g.Ordinal] = g
	t.changes.PutGrant(g)
	if !g.Due.IsZero() && g.RunID == "" {
		t.dueProviders = append(t.dueProviders, g.Provider)
	}
	if before.State == g.State {
		return
	}
	t.transitions = append(t.transitions, g)
	t.changes.AddHistory(api.HistoryEntry{Time: t.now, Permission: g.Permission, From: before.State, To: g.State,
		Attempt: t.app.Attempt, Reason: g.Reason, Message: g.Message, Who: t.user})
}

// provider reads a provider.
func (e *Engine) provider(v store.View, name string) (api.Provider, error) {
	var p api.Provider
	o, err := v.Object(store.KindProvider, name)
	if err != nil {
		return p, fmt.Errorf("read provider %s: %w", name, err)
	}
	if err := json.Unmarshal(o.Body, &p); err != nil {
		return p, fmt.Errorf("read provider %s: %w", name, err)
	}
	p.Version = o.Version
	return p, nil
}

func newRunID() string { return rand.Text() }
