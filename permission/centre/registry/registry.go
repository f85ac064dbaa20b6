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

// InUse is returned if an object cannot be deleted or changed because it is in use.
type InUse struct{ Message string }

func (r InUse) Error() string { return r.Message }

// AlreadyExists is returned if an object of that name exists.
type AlreadyExists struct{ Message string }

func (t AlreadyExists) Error() string { return t.Message }

// Registry stores registered objects.
type Registry struct {
	Store   *store.Store
	Factory provider.Factory
	Clock   clock.PassiveClock
}

// object is a type of registered object.
type object interface {
	api.Provider | api.Permission | api.PermissionSet
}

// resource defines the rules of a kind.
type resource[T object] struct {
	kind store.Kind
	meta func(*T) *api.Meta
	// prepare sets defaults and validates, in the transaction.
	prepare func(r *Registry, tx store.Tx, o *T) error
	// references returns the objects that the object refers to.
	references func(o T) (store.Kind, []string)
	// inUse says what else prevents deletion; empty if nothing does.
	inUse func(v store.View, name string) (string, error)
	// checkChange rejects changes of immutable fields.
	checkChange func(v store.View, before, after T) error
	// derive sets the fields of read objects that depend on other objects; nil if there are none.
	derive func(v store.View, objects []T) error
}

// Resource has the operations on a kind.
type Resource[T object] struct {
	r *Registry
	resource[T]
}

// Get reads an object.
func (c Resource[T]) Get(ctx context.Context, name string) (T, error) {
	var none T
	v := c.r.Store.View(ctx)
	row, err := v.Object(c.kind, name)
	if err != nil {
		return none, err
	}
	items, err := c.read(v, row)
	if err != nil {
		return none, err
	}
	return items[0], nil
}

// List reads a page of objects.
func (c Resource[T]) List(ctx context.Context, page store.Page) ([]T, error) {
	v := c.r.Store.View(ctx)
	rows, err := v.Objects(c.kind, page)
	if err != nil {
		return nil, err
	}
	return c.read(v, rows...)
}

// read decodes rows and sets the derived fields.
func (c Resource[T]) read(v store.View, rows ...store.Object) ([]T, error) {
	items := make([]T, len(rows))
	for i, row := range rows {
		item, err := c.decode(row)
		if err != nil {
			return nil, err
		}
		items[i] = item
	}
	if c.derive == nil {
		return items, nil
	}
	return items, c.derive(v, items)
}

// Create registers an object.
func (c Resource[T]) Create(ctx context.Context, o T, user string) (T, error) {
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
		if err := tx.Create(row); errors.Is(err, store.ErrConflict) {
			return AlreadyExists{fmt.Sprintf("%s %s already exists; change it with PUT and If-Match", c.kind, row.Name)}
		} else if err != nil {
			return err
		}
		return c.record(tx, o, "create", user, "", string(row.Body))
	})
	return o, err
}

// Update replaces the object of the given version. may authorizes the change. It reads in the transaction: with another
// connection, concurrent changes could hold all connections of the pool and wait for more.
func (c Resource[T]) Update(ctx context.Context, name string, o T, version int64, user string, may func(v store.View, before T) error) (T, error) {
	err := c.r.Store.Write(ctx, func(tx store.Tx) error {
		row, before, err := c.lockVersion(tx, name, version, may)
		if err != nil {
			return err
		}
		m := c.meta(&o)
		m.Name, m.Created, m.Updated, m.Version = name, row.Created, c.r.Clock.Now().UTC(), version+1
		if err := c.prepare(c.r, tx, &o); err != nil {
			return err
		}
		if err := c.checkChange(tx.View, before, o); err != nil {
			return err
		}
		next, err := c.encode(o)
		if err != nil {
			return err
		}
		if err := tx.Update(next, version); err != nil {
			return err
		}
		return c.record(tx, o, "update", user, string(row.Body), string(next.Body))
	})
	return o, err
}

// Delete deletes the object of the given version unless it is in use.
func (c Resource[T]) Delete(ctx context.Context, name string, version int64, user string, may func(v store.View, before T) error) error {
	return c.r.Store.Write(ctx, func(tx store.Tx) error {
		row, _, err := c.lockVersion(tx, name, version, may)
		if err != nil {
			return err
		}
		n, err := tx.CountReferences(c.kind, name)
		if err != nil {
			return err
		}
		if n > 0 {
			return InUse{fmt.Sprintf("%s %s is used by %d %ss; change or delete those first", c.kind, name, n, referrerOf(c.kind))}
		}
		if use, err := c.inUse(tx.View, name); err != nil {
			return err
		} else if use != "" {
			return InUse{fmt.Sprintf("%s %s %s", c.kind, name, use)}
		}
		if err := tx.Delete(c.kind, name, version); err != nil {
			return err
		}
		return tx.AddAudit(c.r.Clock.Now(), api.AuditEntry{Who: user, Verb: "delete", Kind: string(c.kind), Name: name, Before: string(row.Body)})
	})
}

// lockVersion locks and reads the object of the given version. may authorizes the change.
func (c Resource[T]) lockVersion(tx store.Tx, name string, version int64, may func(v store.View, before T) error) (row store.Object, before T, err error) {
	if row, err = tx.LockObject(c.kind, name); err != nil {
		return row, before, err
	}
	if before, err = c.decode(row); err != nil {
		return row, before, err
	}
	if err = may(tx.View, before); err == nil && row.Version != version {
		err = store.ErrConflict
	}
	return row, before, err
}

func referrerOf(kind store.Kind) store.Kind {
	if kind == store.KindProvider {
		return store.KindPermission
	}
	return store.KindSet
}

// record writes references and the audit entry in the transaction.
func (c Resource[T]) record(tx store.Tx, o T, verb, user, before, after string) error {
	m := c.meta(&o)
	if kind, names := c.references(o); kind != "" {
		if err := tx.SetReferences(c.kind, m.Name, kind, names); err != nil {
			return err
		}
	}
	return tx.AddAudit(m.Updated, api.AuditEntry{Who: user, Verb: verb, Kind: string(c.kind), Name: m.Name, Before: before, After: after})
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
