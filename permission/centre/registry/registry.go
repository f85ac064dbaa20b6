package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// Referenced says that the object cannot go because others need it.
type Referenced struct{ Message string }

func (r Referenced) Error() string { return r.Message }

// Taken says that there is an object of that name.
type Taken struct{ Message string }

func (t Taken) Error() string { return t.Message }

// Registry registers.
type Registry struct {
	Store   *store.Store
	Factory provider.Factory
	Clock   clock.PassiveClock
	// CanRevoke is told of a provider that can revoke what it could not before.
	CanRevoke func(ctx context.Context, provider string) error
	// Serve is told of a new provider.
	Serve func(provider string) error
}

// object is what is registered.
type object interface {
	api.Provider | api.Permission | api.PermissionSet
}

// resource is how a kind is checked and what it needs.
type resource[T object] struct {
	kind store.Kind
	meta func(*T) *api.Meta
	// prepare fills in defaults and checks, within the transaction.
	prepare func(r *Registry, tx store.Tx, o *T) error
	// needs are the objects that it refers to.
	needs func(o T) (store.Kind, []string)
	// held counts what keeps it from being deleted beside references.
	held func(v store.View, name string) (string, error)
	// change says what may not change.
	change func(v store.View, before, after T) error
}

// Resource is a kind's operations.
type Resource[T object] struct {
	r *Registry
	resource[T]
}

// Kind of the resource.
func (c Resource[T]) Kind() store.Kind { return c.kind }

// Get finds one.
func (c Resource[T]) Get(ctx context.Context, name string) (T, error) {
	o, err := c.r.Store.View(ctx).Object(c.kind, name)
	if err != nil {
		var none T
		return none, err
	}
	return c.decode(o)
}

// List finds a page.
func (c Resource[T]) List(ctx context.Context, page store.Page) ([]T, error) {
	objects, err := c.r.Store.View(ctx).Objects(c.kind, page)
	if err != nil {
		return nil, err
	}
	items := make([]T, 0, len(objects))
	for _, o := range objects {
		item, err := c.decode(o)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// Create registers a new one.
func (c Resource[T]) Create(ctx context.Context, o T, who string) (T, error) {
	m := c.meta(&o)
	m.Version, m.Created = 1, c.r.Clock.Now().UTC()
	m.Updated = m.Created
	err := c.r.Store.Write(ctx, func(tx store.Tx) error {
		if err := c.prepare(c.r, tx, &o); err != nil {
			return err
		}
		row, err := c.encode(o)
		if err != nil {
			return err
		}
		if err := tx.Create(row); errors.Is(err, store.ErrChanged) {
			return Taken{fmt.Sprintf("%s %s exists already; change it with PUT and If-Match", c.kind, row.Name)}
		} else if err != nil {
			return err
		}
		return c.record(tx, o, "create", who, "", string(row.Body))
	})
	if err == nil {
		err = c.after(ctx, nil, &o)
	}
	return o, err
}

// Update replaces the one of the given version.
func (c Resource[T]) Update(ctx context.Context, name string, o T, version int64, who string, may func(ctx context.Context, before T) error) (T, error) {
	var before T
	err := c.r.Store.Write(ctx, func(tx store.Tx) error {
		row, err := tx.LockObject(c.kind, name)
		if err != nil {
			return err
		}
		if before, err = c.decode(row); err != nil {
			return err
		}
		if err := may(ctx, before); err != nil {
			return err
		}
		if row.Version != version {
			return store.ErrChanged
		}
		m := c.meta(&o)
		m.Name, m.Created, m.Updated, m.Version = name, row.Created, c.r.Clock.Now().UTC(), version+1
		if err := c.prepare(c.r, tx, &o); err != nil {
			return err
		}
		if err := c.change(tx.View, before, o); err != nil {
			return err
		}
		next, err := c.encode(o)
		if err != nil {
			return err
		}
		if err := tx.Update(next, version); err != nil {
			return err
		}
		return c.record(tx, o, "update", who, string(row.Body), string(next.Body))
	})
	if err == nil {
		err = c.after(ctx, &before, &o)
	}
	return o, err
}

// Delete removes the one of the given version, unless others need it.
func (c Resource[T]) Delete(ctx context.Context, name string, version int64, who string, may func(ctx context.Context, before T) error) error {
	return c.r.Store.Write(ctx, func(tx store.Tx) error {
		row, err := tx.LockObject(c.kind, name)
		if err != nil {
			return err
		}
		before, err := c.decode(row)
		if err != nil {
			return err
		}
		if err := may(ctx, before); err != nil {
			return err
		}
		if row.Version != version {
			return store.ErrChanged
		}
		n, err := tx.Linked(c.kind, name)
		if err != nil {
			return err
		}
		if n > 0 {
			return Referenced{fmt.Sprintf("%s %s is used by %d %ss; change or delete those first", c.kind, name, n, userOf(c.kind))}
		}
		if held, err := c.held(tx.View, name); err != nil {
			return err
		} else if held != "" {
			return Referenced{fmt.Sprintf("%s %s %s", c.kind, name, held)}
		}
		if err := tx.Delete(c.kind, name, version); err != nil {
			return err
		}
		return tx.AddAudit(c.r.Clock.Now(), api.AuditEntry{Who: who, Verb: "delete", Kind: string(c.kind), Name: name, Before: string(row.Body)})
	})
}

func userOf(kind store.Kind) store.Kind {
	if kind == store.KindProvider {
		return store.KindPermission
	}
	return store.KindSet
}

// record links and audits within the transaction.
func (c Resource[T]) record(tx store.Tx, o T, verb, who, before, after string) error {
	m := c.meta(&o)
	if kind, names := c.needs(o); kind != "" {
		if err := tx.Link(c.kind, m.Name, kind, names); err != nil {
			return err
		}
	}
	return tx.AddAudit(m.Updated, api.AuditEntry{Who: who, Verb: verb, Kind: string(c.kind), Name: m.Name, Before: before, After: after})
}

func (c Resource[T]) encode(o T) (store.Object, error) {
	body, err := json.Marshal(o)
	m := c.meta(&o)
	return store.Object{Kind: c.kind, Name: m.Name, Owner: m.Owner, Description: m.Description, Body: body,
		Version: m.Version, Created: m.Created, Updated: m.Updated}, err
}

func (c Resource[T]) decode(row store.Object) (T, error) {
	var o T
	err := json.Unmarshal(row.Body, &o)
	return o, err
}

// after tells of a provider what others must know.
func (c Resource[T]) after(ctx context.Context, before, now *T) error {
	p, ok := any(now).(*api.Provider)
	if !ok {
		return nil
	}
	if err := c.r.Serve(p.Name); err != nil {
		return err
	}
	if b, ok := any(before).(*api.Provider); ok && b != nil && !b.CanRevoke && p.CanRevoke {
		return c.r.CanRevoke(ctx, p.Name)
	}
	return nil
}
