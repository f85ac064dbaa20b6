// Package lifecycle takes applications from Requested to Granted, Denied or Failed,
// and back to Revoked or Leaked. Every step of a grant is a job; the
// transaction that ends a step writes its result, what follows from it and the
// next job together. Before a provider is called its intent is stored: the key
// of the call, and until when the caller may be at it. A worker that dies
// leaves that behind, and another repeats the call with the same key.
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

// Enqueuer is the queue.
type Enqueuer interface {
	Enqueue(ctx context.Context, tx *sql.Tx, provider string, job queue.Job, due time.Time) (int64, error)
}

// Pacer keeps below a provider's rate limit.
type Pacer interface {
	Next(ctx context.Context, provider string, limit api.RateLimit, horizon time.Duration) (time.Time, error)
	Late(at time.Time) bool
}

// Breaker spares a provider that is down.
type Breaker interface {
	// Rest says for how long the provider is not to be called.
	Rest(provider string) time.Duration
	// Do calls unless the provider rests; call says whether it is well.
	Do(provider string, call func() bool) (called bool)
}

// Watchers are told of applications that changed.
type Watchers interface{ Changed(application string) }

// Metrics count what happened.
type Metrics interface {
	State(provider, reason string, to api.State)
	Call(provider string, op provider.Op, r provider.Result, took time.Duration)
	Reused(provider string)
}

// Callers make a provider's caller.
type Callers interface {
	New(p api.Provider) (provider.Caller, error)
}

// Engine does the work. All fields are needed.
type Engine struct {
	Store    *store.Store
	Queue    Enqueuer
	Pacer    Pacer
	Breaker  Breaker
	Callers  Callers
	Clock    clock.Clock
	Random   func() float64
	Watchers Watchers
	Metrics  Metrics
	Log      *slog.Logger
	// Patience is for how long a job that is due and not done is left alone.
	Patience time.Duration
	// Stopping is closed when no new call is to begin.
	Stopping <-chan struct{}
}

// ErrGoing says that the application is being revoked, or was and whoever asks
// does not say that its pod lives.
var ErrGoing = errors.New("the pod is going")

// Refusal is a request that cannot be, and which field is wrong.
type Refusal struct{ Field, Message string }

func (r Refusal) Error() string { return r.Field + ": " + r.Message }

// txn is a transaction over one application and its grants.
type txn struct {
	store.Tx
	e      *Engine
	ctx    context.Context
	now    time.Time
	app    store.Application
	grants []store.Grant
	who    string
}

// change locks an application and lets f change it; what it becomes as a whole
// and who is to be told follows.
func (e *Engine) change(ctx context.Context, id, who string, f func(*txn) error) (store.Application, []store.Grant, error) {
	t := &txn{e: e, ctx: ctx, now: e.Clock.Now().UTC(), who: who}
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
		return t.settle()
	})
	if err != nil {
		return t.app, nil, err
	}
	e.Watchers.Changed(id)
	return t.app, t.grants, nil
}

// settle derives the application's state and writes it.
func (t *txn) settle() error {
	s := Derive(t.app.Going, t.grants)
	if s.State != t.app.State {
		if err := t.AddHistory(t.app.ID, api.HistoryEntry{Time: t.now, From: t.app.State, To: s.State, Attempt: t.app.Attempt,
			Reason: s.Reason, Message: s.Message, Who: t.who}); err != nil {
			return err
		}
	}
	t.app.State, t.app.Reason, t.app.Message = s.State, s.Reason, s.Message
	t.app.Updated = t.now
	t.app.Version++
	return t.UpdateApplication(t.app)
}

// put writes a grant that was before; a change of state is history.
func (t *txn) put(before, g store.Grant) error {
	t.grants[g.Ordinal] = g
	if err := t.PutGrant(g); err != nil {
		return err
	}
	if before.State == g.State {
		return nil
	}
	t.e.Metrics.State(g.Provider, g.Reason, g.State)
	return t.AddHistory(t.app.ID, api.HistoryEntry{Time: t.now, Permission: g.Permission, From: before.State, To: g.State,
		Attempt: t.app.Attempt, Reason: g.Reason, Message: g.Message, Who: t.who})
}

// enqueue makes the job of a grant's next step, due at g.Due.
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
		return p, fmt.Errorf("provider %s: %w", name, err)
	}
	if err := json.Unmarshal(o.Body, &p); err != nil {
		return p, fmt.Errorf("provider %s: %w", name, err)
	}
	p.Version = o.Version
	return p, nil
}

func leaseName() string { return rand.Text() }
