// Package lifecycle runs the state machine of applications: from Requested to
// Granted, Denied or Failed, then to Revoked or Leaked. Each step of a grant is
// a job. The transaction that ends a step writes its result and enqueues the
// next job. Before a provider is called, the intent is stored: the idempotency
// key and a claim. If a worker dies, another retries the call with the same key
// when the claim has expired.
package lifecycle

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/queue"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// Enqueuer inserts jobs into the queue.
type Enqueuer interface {
	Enqueue(ctx context.Context, tx *sql.Tx, provider string, job queue.Job, due time.Time) (int64, error)
}

// RateLimiter reserves slots for calls to a provider; see package ratelimit.
type RateLimiter interface {
	Reserve(ctx context.Context, provider string, limit api.RateLimit, horizon time.Duration) (time.Time, error)
	Expired(at time.Time) bool
}

// Breaker is the circuit breaker of the providers.
type Breaker interface {
	// OpenFor returns how long the breaker stays open; zero if it is closed.
	OpenFor(provider string) time.Duration
	// Do runs call unless the breaker is open. call reports success.
	Do(provider string, call func() bool) (called bool)
}

// Notifier is notified of changed applications.
type Notifier interface{ Notify(application string) }

// Metrics records metrics.
type Metrics interface {
	GrantState(provider, reason string, to api.State)
	Call(provider string, op provider.Op, r provider.Result, took time.Duration)
	AddressReused(permission string)
}

// ClientFactory creates the client of a provider.
type ClientFactory interface {
	New(p api.Provider) (provider.Client, error)
}

// Engine runs the state machine. All fields are required.
type Engine struct {
	Store    *store.Store
	Queue    Enqueuer
	Limiter  RateLimiter
	Breaker  Breaker
	Clients  ClientFactory
	Clock    clock.Clock
	Random   func() float64
	Notifier Notifier
	Metrics  Metrics
	Log      *slog.Logger
	// TakeoverAfter is how long a due grant may have no job before it is
	// recovered.
	TakeoverAfter time.Duration
	// Stopping is closed when no new call may begin.
	Stopping <-chan struct{}
}

// ErrRevokeRequested is returned if the application is being revoked, or if it
// was revoked and the request does not confirm that its pod exists.
var ErrRevokeRequested = errors.New("revocation was requested")

// InvalidRequest names an invalid field of a request.
type InvalidRequest struct{ Field, Message string }

func (r InvalidRequest) Error() string { return r.Field + ": " + r.Message }

// txn is a transaction on one application and its grants.
type txn struct {
	store.Tx
	e      *Engine
	ctx    context.Context
	now    time.Time
	app    store.Application
	grants []store.Grant
	user   string
}

// update locks an application, runs f, writes the derived status and notifies
// watchers.
func (e *Engine) update(ctx context.Context, id, user string, f func(*txn) error) (store.Application, []store.Grant, error) {
	t := &txn{e: e, ctx: ctx, now: e.Clock.Now().UTC(), user: user}
	err := e.Store.Write(ctx, func(tx store.Tx) (err error) {
		t.Tx = tx
		if t.app, err = tx.LockApplication(id); err != nil {
			return err
		}
		if t.grants, err = tx.Grants(id); err != nil {
			return err
		}
		if err := f(t); err != nil {
			return err
		}
		return t.writeStatus()
	})
	if err != nil {
		return t.app, nil, err
	}
	e.Notifier.Notify(id)
	return t.app, t.grants, nil
}

// writeStatus derives and writes the status of the application.
func (t *txn) writeStatus() error {
	status := Derive(t.app.RevokeRequested, t.grants)
	if status.State != t.app.State {
		if err := t.AddHistory(t.app.ID, api.HistoryEntry{Time: t.now, From: t.app.State, To: status.State, Attempt: t.app.Attempt,
			Reason: status.Reason, Message: status.Message, Who: t.user}); err != nil {
			return err
		}
	}
	t.app.State, t.app.Reason, t.app.Message = status.State, status.Reason, status.Message
	t.app.Updated = t.now
	t.app.Version++
	return t.UpdateApplication(t.app)
}

// writeGrant writes a grant and records a state change in the history.
func (t *txn) writeGrant(before, g store.Grant) error {
	t.grants[g.Ordinal] = g
	if err := t.PutGrant(g); err != nil {
		return err
	}
	if before.State == g.State {
		return nil
	}
	t.e.Metrics.GrantState(g.Provider, g.Reason, g.State)
	return t.AddHistory(t.app.ID, api.HistoryEntry{Time: t.now, Permission: g.Permission, From: before.State, To: g.State,
		Attempt: t.app.Attempt, Reason: g.Reason, Message: g.Message, Who: t.user})
}

// enqueue enqueues the next step of a grant, due at g.Due.
func (t *txn) enqueue(g *store.Grant) error {
	g.Step++
	job, err := t.e.Queue.Enqueue(t.ctx, t.SQL, g.Provider, queue.Job{Application: g.Application, Ordinal: g.Ordinal, Step: g.Step}, g.Due)
	g.Job = job
	return err
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

func newClaimID() string { return rand.Text() }
