package api

import "time"

// Meta is what the registered objects have in common. Names are DNS-1123
// subdomains, at most 253 characters. Version is the ETag: PUT and DELETE need
// If-Match with it (428 without, 412 when it is not current).
type Meta struct {
	Name string `json:"name"`
	// Owner is the group or user whose members may change it and see its applications.
	Owner       string    `json:"owner"`
	Description string    `json:"description,omitempty"`
	Version     int64     `json:"version"`
	Created     time.Time `json:"created"`
	Updated     time.Time `json:"updated"`
}

// Permission is something that a provider can grant to an address.
type Permission struct {
	Meta
	Provider string `json:"provider"`
	// Parameters are handed to the provider; which ones it takes is its type's.
	Parameters map[string]string `json:"parameters,omitempty"`
}

// PermissionSet is an ordered group of permissions; pods ask for sets.
type PermissionSet struct {
	Meta
	Permissions []string `json:"permissions"`
	// Pods are those that may ask for the set; any may when it is empty. One
	// that may not is answered 403 with Field "set".
	Pods []PodPattern `json:"pods,omitempty"`
	// NodeScoped is true when every provider of the set grants to nodes, so
	// that pods with hostNetwork may ask for it. Derived; read only.
	NodeScoped bool `json:"nodeScoped"`
}

// PodPattern matches pods. An empty field matches any, * stands for any
// characters.
type PodPattern struct {
	Cluster        string `json:"cluster,omitempty"`
	Namespace      string `json:"namespace,omitempty"`
	ServiceAccount string `json:"serviceAccount,omitempty"`
}

// Paths: GET (list, with limit, continue and search), POST on
// /v1/{providers,permissions,permissionsets}; GET, PUT, DELETE on
// /v1/.../{name}. GET /v1/audit: who changed what, when.

// Error is the body of every answer of 400 and above.
type Error struct {
	// Reason is one word: BadRequest, NotFound, Conflict, Unauthorized,
	// Forbidden, PreconditionRequired, PreconditionFailed, TooManyRequests, Unavailable.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Field names the field that is wrong, as a JSON path.
	Field string `json:"field,omitempty"`
}
