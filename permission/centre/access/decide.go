// Package access authenticates and authorizes the users of the centre. A user is
// authenticated by a Kubernetes token (TokenReview), an OIDC token or a static
// token. An owner, or a member of an owner group, may delete permissions and sets; to
// create or change them, an owner must also be a registrant. Three roles are configured:
// admins, registrants, and the components of a cluster.
package access

import (
	"fmt"
	"slices"
	"strings"
)

// User is an authenticated user.
type User struct {
	Name   string
	Groups []string
}

// String returns the user for error messages.
func (u User) String() string {
	if len(u.Groups) == 0 {
		return u.Name
	}
	return u.Name + " (groups: " + strings.Join(u.Groups, ", ") + ")"
}

// BelongsTo reports whether the user is the owner or a member of the owner group.
func (u User) BelongsTo(owner string) bool {
	return u.Name == owner || slices.Contains(u.Groups, owner)
}

// OwnerNames returns all owners that the user belongs to.
func (u User) OwnerNames() []string { return append([]string{u.Name}, u.Groups...) }

// ClusterComponents lists the components that may act for a cluster: its
// init-action-server, permission-controller and permission-webhook.
type ClusterComponents struct {
	Name   string   `json:"name"`
	Users  []string `json:"users,omitempty"`
	Groups []string `json:"groups,omitempty"`
}

// Roles are the configured roles.
type Roles struct {
	// Admins are the users and groups that may do everything.
	Admins []string `json:"admins,omitempty"`
	// Registrants are the users and groups that may register permissions and sets; *
	// is everybody who is authenticated.
	Registrants []string            `json:"registrants,omitempty"`
	Clusters    []ClusterComponents `json:"clusters,omitempty"`
}

// Forbidden is an authorization error. Missing says what the request requires.
type Forbidden struct {
	User    User
	Missing string
}

func (f Forbidden) Error() string { return fmt.Sprintf("user %s is forbidden: %s", f.User, f.Missing) }

// Admin reports whether the user is an admin.
func (r Roles) Admin(u User) bool { return slices.ContainsFunc(r.Admins, u.BelongsTo) }

// ClustersOf returns the clusters that the user may act for.
func (r Roles) ClustersOf(u User) []string {
	var names []string
	for _, c := range r.Clusters {
		if slices.Contains(c.Users, u.Name) || slices.ContainsFunc(c.Groups, func(g string) bool { return slices.Contains(u.Groups, g) }) {
			names = append(names, c.Name)
		}
	}
	return names
}

// MayAdmin allows admins only: for providers, whose endpoints receive the centre's
// credentials, for the audit, and for confirmations of reports. what names the action.
func (r Roles) MayAdmin(u User, what string) error {
	if r.Admin(u) {
		return nil
	}
	return Forbidden{u, what + " requires an admin of the permission centre (admins: " + listOrNone(r.Admins) + ")"}
}

// MayRegister allows registrants and admins. what names the action.
func (r Roles) MayRegister(u User, what string) error {
	if r.Admin(u) || slices.ContainsFunc(r.Registrants, func(name string) bool { return name == "*" || u.BelongsTo(name) }) {
		return nil
	}
	return Forbidden{u, what + " requires a registrant of the permission centre (registrants: " + listOrNone(r.Registrants) + "); ask an admin to add you to registrants in ACCESS_FILE"}
}

// MayActAsOwner allows the owner and admins. what names the action.
func (r Roles) MayActAsOwner(u User, owner, what string) error {
	if r.Admin(u) || u.BelongsTo(owner) {
		return nil
	}
	return Forbidden{u, fmt.Sprintf("%s requires owner %s or an admin", what, owner)}
}

// MayActFor allows the components of the cluster and admins.
func (r Roles) MayActFor(u User, cluster string) error {
	clusters := r.ClustersOf(u)
	switch {
	case r.Admin(u) || slices.Contains(clusters, cluster):
		return nil
	case len(clusters) > 0:
		return Forbidden{u, fmt.Sprintf("the user may act for cluster %s, not for %s", strings.Join(clusters, ", "), cluster)}
	default:
		return Forbidden{u, fmt.Sprintf("the user is not listed under cluster %s in ACCESS_FILE", cluster)}
	}
}

// MayView allows an owner of one of the application's permissions, and whoever
// may act for its cluster.
func (r Roles) MayView(u User, cluster string, owners []string) error {
	if slices.ContainsFunc(owners, u.BelongsTo) || r.MayActFor(u, cluster) == nil {
		return nil
	}
	return Forbidden{u, "viewing the application requires an owner of one of its permissions (" + strings.Join(owners, ", ") + ")"}
}

// MayRevoke allows a user that belongs to all owners of the application's
// permissions, and whoever may act for its cluster.
func (r Roles) MayRevoke(u User, cluster string, owners []string) error {
	for _, owner := range owners {
		if !u.BelongsTo(owner) && r.MayActFor(u, cluster) != nil {
			return Forbidden{u, "revoking the application requires a user who belongs to each owner of its permissions (" + strings.Join(owners, ", ") + "), or an admin"}
		}
	}
	return nil
}

func listOrNone(names []string) string {
	if len(names) == 0 {
		return "none configured"
	}
	return strings.Join(names, ", ")
}
