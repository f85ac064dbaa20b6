package rest

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/access"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// redacted replaces values that only the owner and admins may see.
const redacted = "(hidden)"

// providerRules let only admins change providers, because the endpoint receives
// the centre's credentials. Only admins and the owner see the requests.
func providerRules(s *Server) rules[api.Provider] {
	return rules[api.Provider]{
		meta: func(p *api.Provider) *api.Meta { return &p.Meta },
		authorize: func(_ store.View, u access.User, _, _ *api.Provider) error {
			return s.Roles.MayAdmin(u, "changing a provider")
		},
		redact: func(u access.User, p api.Provider) api.Provider {
			if !s.Roles.Admin(u) && !u.BelongsTo(p.Owner) {
				p.HTTP, p.CredentialsRef = nil, ""
			}
			return p
		},
	}
}

// permissionRules let only the owner and admins change a permission and see its
// parameters.
func permissionRules(s *Server) rules[api.Permission] {
	return rules[api.Permission]{
		meta: func(p *api.Permission) *api.Meta { return &p.Meta },
		authorize: func(_ store.View, u access.User, before, after *api.Permission) error {
			return authorizeOwner(s.Roles, u, before, after, func(p *api.Permission) *api.Meta { return &p.Meta })
		},
		redact: func(u access.User, p api.Permission) api.Permission {
			if !s.Roles.Admin(u) && !u.BelongsTo(p.Owner) {
				p.Parameters = maps.Clone(p.Parameters)
				for name := range p.Parameters {
					p.Parameters[name] = redacted
				}
			}
			return p
		},
	}
}

// setRules let a user add a permission to a set only as owner of the permission,
// because the set grants it to pods.
func setRules(s *Server) rules[api.PermissionSet] {
	return rules[api.PermissionSet]{
		meta: func(p *api.PermissionSet) *api.Meta { return &p.Meta },
		authorize: func(v store.View, u access.User, before, after *api.PermissionSet) error {
			if err := authorizeOwner(s.Roles, u, before, after, func(p *api.PermissionSet) *api.Meta { return &p.Meta }); err != nil || after == nil {
				return err
			}
			for i, name := range after.Permissions {
				// A permission that the set already has may stay if the pods of the set
				// do not change.
				if before != nil && slices.Contains(before.Permissions, name) && slices.Equal(before.Pods, after.Pods) {
					continue
				}
				p, err := v.Object(store.KindPermission, name)
				if errors.Is(err, store.ErrNotFound) {
					return badRequest(fmt.Sprintf("permissions[%d]", i), fmt.Sprintf("%q does not exist; register it first", name))
				} else if err != nil {
					return err
				}
				if err := s.Roles.MayActAsOwner(u, p.Owner, "adding permission "+name+" to a set"); err != nil {
					return err
				}
			}
			return nil
		},
		redact: func(_ access.User, p api.PermissionSet) api.PermissionSet { return p },
	}
}

// authorizeOwner checks that the user owns the object before and after the change, and may
// register one.
func authorizeOwner[T any](roles access.Roles, u access.User, before, after *T, meta func(*T) *api.Meta) error {
	for _, o := range []*T{before, after} {
		if o == nil {
			continue
		}
		m := meta(o)
		if m.Owner == "" {
			continue // The validation rejects it later.
		}
		if err := roles.MayActAsOwner(u, m.Owner, "changing "+m.Name); err != nil {
			return err
		}
	}
	if after != nil {
		return roles.MayRegister(u, "registering "+meta(after).Name)
	}
	return nil
}
