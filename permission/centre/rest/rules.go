package rest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/access"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// hidden stands for what only the owner sees.
const hidden = "(hidden)"

// providerRules: a provider's endpoint gets the centre's credentials, so only
// admins change it, and only they see its requests.
func providerRules(s *Server) rules[api.Provider] {
	return rules[api.Provider]{
		meta: func(p *api.Provider) *api.Meta { return &p.Meta },
		write: func(_ context.Context, u access.User, _, _ *api.Provider) error {
			return s.Roles.MayAdmin(u, "to change a provider")
		},
		show: func(u access.User, p api.Provider) api.Provider {
			if !s.Roles.Admin(u) && !u.Is(p.Owner) {
				p.HTTP, p.CredentialsRef = nil, ""
			}
			return p
		},
	}
}

// permissionRules: an owner's permissions are theirs to change and to read.
func permissionRules(s *Server) rules[api.Permission] {
	return rules[api.Permission]{
		meta: func(p *api.Permission) *api.Meta { return &p.Meta },
		write: func(_ context.Context, u access.User, before, after *api.Permission) error {
			return owned(s.Roles, u, before, after, func(p *api.Permission) *api.Meta { return &p.Meta })
		},
		show: func(u access.User, p api.Permission) api.Permission {
			if !s.Roles.Admin(u) && !u.Is(p.Owner) {
				p.Parameters = maps.Clone(p.Parameters)
				for name := range p.Parameters {
					p.Parameters[name] = hidden
				}
			}
			return p
		},
	}
}

// setRules: a set gives away its permissions, so whoever puts one in must be
// of its owner.
func setRules(s *Server) rules[api.PermissionSet] {
	return rules[api.PermissionSet]{
		meta: func(p *api.PermissionSet) *api.Meta { return &p.Meta },
		write: func(ctx context.Context, u access.User, before, after *api.PermissionSet) error {
			if err := owned(s.Roles, u, before, after, func(p *api.PermissionSet) *api.Meta { return &p.Meta }); err != nil || after == nil {
				return err
			}
			for i, name := range after.Permissions {
				// What is in the set already stays, but not for more pods.
				if before != nil && slices.Contains(before.Permissions, name) && slices.Equal(before.Pods, after.Pods) {
					continue
				}
				p, err := s.Registry.Permissions().Get(ctx, name)
				if errors.Is(err, store.ErrNotFound) {
					return bad(fmt.Sprintf("permissions[%d]", i), fmt.Sprintf("%q does not exist; register it first", name))
				} else if err != nil {
					return err
				}
				if err := s.Roles.MayOwn(u, p.Owner, "to give away permission "+name); err != nil {
					return err
				}
			}
			return nil
		},
		show: func(_ access.User, p api.PermissionSet) api.PermissionSet { return p },
	}
}

// owned: who changes an object must be of its owner, before and after.
func owned[T any](roles access.Roles, u access.User, before, after *T, meta func(*T) *api.Meta) error {
	for _, o := range []*T{before, after} {
		if o == nil {
			continue
		}
		m := meta(o)
		if m.Owner == "" {
			continue // Said to be wrong later, with what would be right.
		}
		if err := roles.MayOwn(u, m.Owner, "to change "+m.Name); err != nil {
			return err
		}
	}
	return nil
}
