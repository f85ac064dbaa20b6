package registry

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// held are the states of a grant that somebody has, may have, or left behind.
var held = []api.State{api.Requested, api.Applying, api.Granted, api.Failed, api.Revoking, api.Leaked}

// Providers that are registered.
func (r *Registry) Providers() Resource[api.Provider] {
	return Resource[api.Provider]{r, resource[api.Provider]{
		kind: store.KindProvider,
		meta: func(p *api.Provider) *api.Meta { return &p.Meta },
		prepare: func(r *Registry, _ store.Tx, p *api.Provider) error {
			defaultProvider(p)
			return checkProvider(*p, r.Factory)
		},
		needs: func(api.Provider) (store.Kind, []string) { return "", nil },
		held: func(v store.View, name string) (string, error) {
			n, err := v.CountGrants(name, "", held...)
			if n == 0 || err != nil {
				return "", err
			}
			return fmt.Sprintf("is needed to take back %d grants; revoke those first", n), nil
		},
		change: func(v store.View, before, after api.Provider) error {
			if before.Type == after.Type && before.NodeScoped == after.NodeScoped {
				return nil
			}
			n, err := v.Linked(store.KindProvider, after.Name)
			if n == 0 || err != nil {
				return err
			}
			return Referenced{fmt.Sprintf("type and nodeScoped of provider %s cannot change: %d permissions use it; register another provider", after.Name, n)}
		},
	}}
}

// Permissions that are registered.
func (r *Registry) Permissions() Resource[api.Permission] {
	return Resource[api.Permission]{r, resource[api.Permission]{
		kind: store.KindPermission,
		meta: func(p *api.Permission) *api.Meta { return &p.Meta },
		prepare: func(r *Registry, tx store.Tx, p *api.Permission) error {
			of, err := find[api.Provider](tx, store.KindProvider, p.Provider)
			if errors.Is(err, store.ErrNotFound) {
				return Invalid{"provider", fmt.Sprintf("%q does not exist; register it first", p.Provider)}
			} else if err != nil {
				return err
			}
			return checkPermission(*p, of, r.Factory)
		},
		needs:  func(p api.Permission) (store.Kind, []string) { return store.KindProvider, []string{p.Provider} },
		held:   nothing,
		change: func(store.View, api.Permission, api.Permission) error { return nil },
	}}
}

// Sets that are registered.
func (r *Registry) Sets() Resource[api.PermissionSet] {
	return Resource[api.PermissionSet]{r, resource[api.PermissionSet]{
		kind: store.KindSet,
		meta: func(s *api.PermissionSet) *api.Meta { return &s.Meta },
		prepare: func(_ *Registry, tx store.Tx, s *api.PermissionSet) error {
			if err := checkSet(*s); err != nil {
				return err
			}
			s.NodeScoped = true
			for i, name := range s.Permissions {
				p, err := find[api.Permission](tx, store.KindPermission, name)
				if errors.Is(err, store.ErrNotFound) {
					return Invalid{fmt.Sprintf("permissions[%d]", i), fmt.Sprintf("%q does not exist; register it first", name)}
				} else if err != nil {
					return err
				}
				of, err := find[api.Provider](tx, store.KindProvider, p.Provider)
				if err != nil {
					return err
				}
				s.NodeScoped = s.NodeScoped && of.NodeScoped
			}
			return nil
		},
		needs:  func(s api.PermissionSet) (store.Kind, []string) { return store.KindPermission, s.Permissions },
		held:   nothing,
		change: func(store.View, api.PermissionSet, api.PermissionSet) error { return nil },
	}}
}

// nothing keeps an object beside what refers to it: applications have what
// they need of it.
func nothing(store.View, string) (string, error) { return "", nil }

// find reads an object that another is about to need, and keeps it there.
func find[T object](tx store.Tx, kind store.Kind, name string) (T, error) {
	var o T
	row, err := tx.LockObject(kind, name)
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(row.Body, &o)
}
