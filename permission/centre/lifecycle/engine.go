// Package lifecycle runs the state machine of applications: from Requested to
// Granted, Denied or Failed, then to Revoked or Leaked. A grant is due when it
// needs a step; the due grants of a provider are its queue. A transaction starts
// due steps in slots of the rate limit: it stores the intent, which is the idempotency
// key and the id of the run. The transaction that ends a step writes its result and
// when the grant is due again. If a process dies, its steps are due when their runs
// expire, and the calls are retried with the same keys.
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
	AddressReused(permission string)
	// Report records a page of a report of existing pods; result is a Report constant.
	Report(cluster, result string)
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
	// Workers is the number of concurrent calls to one provider, for each replica.
	Workers int

	// dispatcher is nil unless Run runs.
	dispatcher atomic.Pointer[dispatcher]
}

// ErrRevokeRequested is returned if the application is being revoked, if it was
// revoked and the request does not confirm that its pod exists, or if the pod has
// ended.
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
	// due are the providers with steps that the transaction made due.
	due []string
}

// update locks an application, runs f, writes the derived status and notifies
// watchers and the dispatcher.
func (e *Engine) update(ctx context.Context, id, user string, f func(*txn) error) (store.Application, []store.Grant, error) {
	return e.updateWith(ctx, e.Store.Write, id, user, f)
}

func (e *Engine) updateWith(ctx context.Context, write func(context.Context, func(store.Tx) error) error, id, user string, f func(*txn) error) (store.Application, []store.Grant, error) {
	t := e.newTxn(ctx, user)
	if err := write(ctx, func(tx store.Tx) error { return t.update(tx, id, f) }); err != nil {
		return t.app, nil, err
	}
	e.committed(t)
	return t.app, t.grants, nil
}

func (e *Engine) newTxn(ctx context.Context, user string) *txn {
	return &txn{e: e, ctx: ctx, now: e.Clock.Now().UTC(), user: user}
}

// update locks an application, runs f and writes the derived status.
func (t *txn) update(tx store.Tx, id string, f func(*txn) error) (err error) {
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
}

// committed notifies watchers and the dispatcher of a committed transaction.
func (e *Engine) committed(t *txn) {
	e.Notifier.Notify(t.app.ID)
	if d := e.dispatcher.Load(); d != nil {
		for _, provider := range t.due {
			d.start(provider)
		}
	}
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
	if !g.Due.IsZero() && g.RunID == "" {
		t.due = append(t.due, g.Provider)
	}
	if before.State == g.State {
		return nil
	}
	t.e.Metrics.GrantState(g.Provider, g.Reason, g.State)
	return t.AddHistory(t.app.ID, api.HistoryEntry{Time: t.now, Permission: g.Permission, From: before.State, To: g.State,
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
