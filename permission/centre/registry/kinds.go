package registry

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// Providers returns the operations on providers.
func (r *Registry) Providers() Resource[api.Provider] {
	return Resource[api.Provider]{r, resource[api.Provider]{
		kind: store.KindProvider,
		meta: func(p *api.Provider) *api.Meta { return &p.Meta },
		prepare: func(r *Registry, _ store.Tx, p *api.Provider) error {
			setProviderDefaults(p)
			return checkProvider(*p, r.Factory)
		},
		references: func(api.Provider) (store.Kind, []string) { return "", nil },
		inUse: func(v store.View, name string) (string, error) {
			n, err := v.CountUnrevoked(name)
			if n == 0 || err != nil {
				return "", err
			}
			return fmt.Sprintf("is needed to revoke %d grants; revoke those first", n), nil
		},
		checkChange: func(v store.View, before, after api.Provider) error {
			if before.Type == after.Type && before.NodeScoped == after.NodeScoped {
				return nil
			}
			n, err := v.CountReferences(store.KindProvider, after.Name)
			if err != nil {
				return err
			}
			if n > 0 {
				return InUse{fmt.Sprintf("type and nodeScoped of provider %s are immutable while %d permissions use it; register another provider", after.Name, n)}
			}
			// A revocation is called by the type, for the addresses of the pod or of its node.
			if n, err = v.CountUnrevoked(after.Name); n == 0 || err != nil {
				return err
			}
			return InUse{fmt.Sprintf("type and nodeScoped of provider %s are immutable while it is needed to revoke %d grants; revoke those first, or register another provider", after.Name, n)}
		},
	}}
}

// Permissions returns the operations on permissions.
func (r *Registry) Permissions() Resource[api.Permission] {
	return Resource[api.Permission]{r, resource[api.Permission]{
		kind: store.KindPermission,
		meta: func(p *api.Permission) *api.Meta { return &p.Meta },
		prepare: func(r *Registry, tx store.Tx, p *api.Permission) error {
			of, err := lockAndDecode[api.Provider](tx, store.KindProvider, p.Provider)
			if errors.Is(err, store.ErrNotFound) {
				return Invalid{"provider", fmt.Sprintf("%q does not exist; register it first", p.Provider)}
			} else if err != nil {
				return err
			}
			return checkPermission(*p, of, r.Factory)
		},
		references:  func(p api.Permission) (store.Kind, []string) { return store.KindProvider, []string{p.Provider} },
		inUse:       notInUse,
		checkChange: func(store.View, api.Permission, api.Permission) error { return nil },
	}}
}

// Sets returns the operations on permission sets.
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
				p, err := lockAndDecode[api.Permission](tx, store.KindPermission, name)
				if errors.Is(err, store.ErrNotFound) {
					return Invalid{fmt.Sprintf("permissions[%d]", i), fmt.Sprintf("%q does not exist; register it first", name)}
				} else if err != nil {
					return err
				}
				of, err := lockAndDecode[api.Provider](tx, store.KindProvider, p.Provider)
				if err != nil {
					return err
				}
				s.NodeScoped = s.NodeScoped && of.NodeScoped
			}
			return nil
		},
		references:  func(s api.PermissionSet) (store.Kind, []string) { return store.KindPermission, s.Permissions },
		inUse:       notInUse,
		checkChange: func(store.View, api.PermissionSet, api.PermissionSet) error { return nil },
		derive:      deriveNodeScoped,
	}}
}

// deriveNodeScoped sets NodeScoped of sets. A permission can move to another provider, which does
// not write the sets that have it.
func deriveNodeScoped(v store.View, sets []api.PermissionSet) error {
	names := make([]string, len(sets))
	for i := range sets {
		names[i] = sets[i].Name
	}
	providers, err := v.ProvidersOfSets(names)
	if err != nil {
		return err
	}
	nodeScoped := map[string]bool{}
	for i := range sets {
		s := &sets[i]
		s.NodeScoped = len(providers[s.Name]) > 0
		for _, name := range providers[s.Name] {
			if _, known := nodeScoped[name]; !known {
				// A provider that was deleted after the first read counts as not node-scoped.
				if nodeScoped[name], err = isNodeScoped(v, name); err != nil && !errors.Is(err, store.ErrNotFound) {
					return err
				}
			}
			s.NodeScoped = s.NodeScoped && nodeScoped[name]
		}
	}
	return nil
}

func isNodeScoped(v store.View, provider string) (bool, error) {
	var p api.Provider
	row, err := v.Object(store.KindProvider, provider)
	if err != nil {
		return false, err
	}
	err = json.Unmarshal(row.Body, &p)
	return p.NodeScoped, err
}

// notInUse is for kinds that applications copy: only references prevent deletion.
func notInUse(store.View, string) (string, error) { return "", nil }

// lockAndDecode reads an object that another object will refer to, and locks it.
func lockAndDecode[T object](tx store.Tx, kind store.Kind, name string) (T, error) {
	var o T
	row, err := tx.LockObject(kind, name)
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(row.Body, &o)
}
