package lifecycle

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/breakwater-dev/breakwater/permission/centre/coalesce"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

const (
	// groupSize bounds the applications of a transaction, because all of them wait for its
	// commit. maxWaiting bounds those that wait for a transaction.
	groupSize  = 64
	maxWaiting = 5000
	// groupTimeout bounds the transaction of a group.
	groupTimeout = 30 * time.Second
	// lockWait bounds the wait for a lock, during which all applications of the transaction
	// wait, and maxAlone the concurrent transactions of applications whose group failed.
	lockWait = time.Second
	maxAlone = 8
)

// groupLimits returns the limits of a coalesce.Queue. SQLite has one writer; with PostgreSQL, one
// transaction is prepared while another one is synced to disk.
func (e *Engine) groupLimits() coalesce.Limits {
	limits := coalesce.Limits{Size: groupSize, Groups: 1, Waiting: maxWaiting, Alone: maxAlone, Timeout: groupTimeout}
	if e.Store.Shared() {
		limits.Groups = 2
	}
	return limits
}

// processAgain reports whether each application of a failed transaction is tried again in its own
// transaction. A single application is tried again only after a lock timeout: outside of the groups,
// so that other applications do not wait for the lock.
func processAgain(err error, applications int) bool {
	return err != nil && !store.WouldFailAgain(err) && (applications > 1 || store.LockTimeout(err))
}

// txn is a transaction on one application and its grants.
type txn struct {
	store.Tx
	engine  *Engine
	now     time.Time
	app     store.Application
	grants  []store.Grant
	user    string
	objects *objects
	// changes are the rows to write. They are written at the end, so the transaction does not read
	// its own changes.
	changes store.Changes
	// transitions are the grants that entered a state, dueProviders the providers with steps that the
	// transaction made due.
	transitions  []store.Grant
	dueProviders []string
}

func (e *Engine) newTxn(tx store.Tx, o *objects, user string) *txn {
	return &txn{Tx: tx, engine: e, now: e.Clock.Now().UTC(), user: user, objects: o}
}

// update is a change of an application. txn and err are its result; an update with an error
// changes nothing.
type update struct {
	ctx      context.Context
	id, user string
	change   func(*txn) error
	txn      *txn
	err      error
}

// writer is Store.Write or Store.WriteInBackground.
type writer func(context.Context, func(store.Tx) error) error

// update locks an application, runs f, writes the derived status and notifies watchers and
// the dispatcher. Concurrent updates share a transaction. f must not wait for a lock, because
// the applications of the others are locked, too. Tx.RetryLeaks skips what is locked.
func (e *Engine) update(ctx context.Context, id, user string, f func(*txn) error) (store.Application, []store.Grant, error) {
	return e.updateIn(ctx, &e.updates, e.Store.Write, id, user, f)
}

// updateInBackground is update for the work that no user waits for.
func (e *Engine) updateInBackground(ctx context.Context, id string, f func(*txn) error) (store.Application, []store.Grant, error) {
	return e.updateIn(ctx, &e.background, e.Store.WriteInBackground, id, "", f)
}

func (e *Engine) updateIn(ctx context.Context, q *coalesce.Queue[*update], write writer, id, user string, f func(*txn) error) (store.Application, []store.Grant, error) {
	u := &update{ctx: ctx, id: id, user: user, change: f}
	if err := q.Do(ctx, e.groupLimits(), u, func(ctx context.Context, all []*update) bool { return e.processUpdates(ctx, write, all) }); err != nil {
		return store.Application{}, nil, err
	}
	return u.result()
}

// updateAlone is update in a transaction of its own, in which f may lock.
func (e *Engine) updateAlone(ctx context.Context, id, user string, f func(*txn) error) (store.Application, []store.Grant, error) {
	u := &update{ctx: ctx, id: id, user: user, change: f}
	e.processUpdates(ctx, e.Store.Write, []*update{u})
	return u.result()
}

func (u *update) result() (store.Application, []store.Grant, error) {
	if u.err != nil {
		return store.Application{}, nil, u.err
	}
	return u.txn.app, u.txn.grants, nil
}

// processUpdates runs updates in one transaction. If it fails, each update gets its own
// transaction, so that an update fails only because of itself.
func (e *Engine) processUpdates(ctx context.Context, write writer, all []*update) (again bool) {
	err := write(ctx, func(tx store.Tx) error {
		if err := tx.LimitLockWait(lockWait); err != nil {
			return err
		}
		return e.updateAll(tx, all)
	})
	for _, u := range all {
		if err != nil {
			u.err = err
		} else if u.err == nil {
			e.committed(u.txn)
		}
	}
	return processAgain(err, len(all))
}

// updateAll runs updates in a transaction. The error is that of the whole transaction.
func (e *Engine) updateAll(tx store.Tx, all []*update) error {
	objects := newObjects(tx.View)
	for len(all) > 0 {
		var now, later []*update
		var ids []string
		for _, u := range all {
			u.txn, u.err = nil, u.ctx.Err()
			switch {
			case u.err != nil:
			case slices.Contains(ids, u.id):
				later = append(later, u) // reads what the first one has written
			default:
				now, ids = append(now, u), append(ids, u.id)
			}
		}
		if err := e.updateEach(tx, objects, now, ids); err != nil {
			return err
		}
		all = later
	}
	return nil
}

// updateEach runs updates of different applications.
func (e *Engine) updateEach(tx store.Tx, objects *objects, all []*update, ids []string) error {
	apps, grants, err := lock(tx, ids)
	if err != nil {
		return err
	}
	var changes []*store.Changes
	for _, u := range all {
		app, exists := apps[u.id]
		if !exists {
			u.err = store.ErrNotFound
			continue
		}
		u.txn = e.newTxn(tx, objects, u.user)
		u.txn.app, u.txn.grants = app, grants[u.id]
		if u.err = u.txn.run(u.change); u.err == nil {
			changes = append(changes, &u.txn.changes)
		}
	}
	return tx.Apply(changes)
}

// lock locks and reads applications and their grants.
func lock(tx store.Tx, ids []string) (map[string]store.Application, map[string][]store.Grant, error) {
	apps, err := tx.LockApplications(ids)
	if err != nil {
		return nil, nil, err
	}
	grants, err := tx.GrantsOf(ids)
	return apps, grants, err
}

// run runs f and derives the status. A panic fails this update alone.
func (t *txn) run(f func(*txn) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in an update: %v\n%s", p, debug.Stack())
		}
	}()
	if err := f(t); err != nil {
		return err
	}
	t.writeStatus()
	return nil
}

// committed records metrics, and notifies watchers and the dispatcher of a committed
// transaction.
func (e *Engine) committed(t *txn) {
	for _, g := range t.transitions {
		e.Metrics.GrantState(g.Provider, g.Reason, g.State)
	}
	e.Notifier.Notify(t.app.ID)
	if d := e.dispatcher.Load(); d != nil {
		for _, provider := range t.dueProviders {
			d.start(provider)
		}
	}
}
