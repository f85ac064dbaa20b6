// Package access says who speaks to the centre, and what they may. Users are
// named by a Kubernetes token (TokenReview), an OIDC token or a static one;
// what they may follows from the owners of what they touch, and from two roles
// that are configured: admins, and the components of a cluster.
package access

import (
	"fmt"
	"slices"
	"strings"
)

// User is who asks.
type User struct {
	Name   string
	Groups []string
}

// String names the user for refusals.
func (u User) String() string {
	if len(u.Groups) == 0 {
		return u.Name
	}
	return u.Name + " (of " + strings.Join(u.Groups, ", ") + ")"
}

// Is says whether the user is, or belongs to, an owner.
func (u User) Is(owner string) bool { return u.Name == owner || slices.Contains(u.Groups, owner) }

// Names are all owners that the user is or belongs to.
func (u User) Names() []string { return append([]string{u.Name}, u.Groups...) }

// Cluster is who may speak for a cluster: its init-action-server, its
// finalizer and its webhook.
type Cluster struct {
	Name   string   `json:"name"`
	Users  []string `json:"users,omitempty"`
	Groups []string `json:"groups,omitempty"`
}

// Roles are configured.
type Roles struct {
	// Admins are users and groups that may do everything.
	Admins   []string  `json:"admins,omitempty"`
	Clusters []Cluster `json:"clusters,omitempty"`
}

// Forbidden says who the user is and what is missing.
type Forbidden struct {
	User    User
	Missing string
}

func (f Forbidden) Error() string { return fmt.Sprintf("you are %s; %s", f.User, f.Missing) }

// Admin says whether the user is one.
func (r Roles) Admin(u User) bool { return slices.ContainsFunc(r.Admins, u.Is) }

// ClustersOf are the clusters that the user may speak for.
func (r Roles) ClustersOf(u User) []string {
	var names []string
	for _, c := range r.Clusters {
		if slices.Contains(c.Users, u.Name) || slices.ContainsFunc(c.Groups, func(g string) bool { return slices.Contains(u.Groups, g) }) {
			names = append(names, c.Name)
		}
	}
	return names
}

// MayAdmin is for what only admins may: providers, whose endpoints get the
// centre's credentials, and the audit.
func (r Roles) MayAdmin(u User, what string) error {
	if r.Admin(u) {
		return nil
	}
	return Forbidden{u, what + " needs an admin of the permission centre (" + orNobody(r.Admins) + ")"}
}

// MayOwn is for changing what an owner has.
func (r Roles) MayOwn(u User, owner, what string) error {
	if r.Admin(u) || u.Is(owner) {
		return nil
	}
	return Forbidden{u, fmt.Sprintf("%s needs its owner %s or an admin", what, owner)}
}

// MaySpeakFor is for applications of a cluster.
func (r Roles) MaySpeakFor(u User, cluster string) error {
	of := r.ClustersOf(u)
	switch {
	case r.Admin(u) || slices.Contains(of, cluster):
		return nil
	case len(of) > 0:
		return Forbidden{u, fmt.Sprintf("you speak for cluster %s, not for %s", strings.Join(of, ", "), cluster)}
	default:
		return Forbidden{u, fmt.Sprintf("you are not one of those that are configured to speak for cluster %s", cluster)}
	}
}

// MaySee is for an application: who speaks for its cluster, and who owns one
// of its permissions.
func (r Roles) MaySee(u User, cluster string, owners []string) error {
	if slices.ContainsFunc(owners, u.Is) || r.MaySpeakFor(u, cluster) == nil {
		return nil
	}
	return Forbidden{u, "this needs an owner of one of the application's permissions (" + strings.Join(owners, ", ") + ")"}
}

// MayRevoke is for taking an application back: whoever owns all of it.
func (r Roles) MayRevoke(u User, cluster string, owners []string) error {
	for _, owner := range owners {
		if !u.Is(owner) && r.MaySpeakFor(u, cluster) != nil {
			return Forbidden{u, "to revoke this needs all owners of the application's permissions (" + strings.Join(owners, ", ") + ") or an admin"}
		}
	}
	return nil
}

func orNobody(names []string) string {
	if len(names) == 0 {
		return "nobody is configured"
	}
	return strings.Join(names, ", ")
}
