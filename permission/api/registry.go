package api

import "time"

// Meta are the fields that all registered objects have. Names are DNS-1123
// subdomains of at most 253 characters. Version is the ETag: PUT and DELETE
// require it in If-Match (428 if missing, 412 if not current).
type Meta struct {
	Name string `json:"name"`
	// Owner is the user or group that may delete the permission or set. The owner of a
	// permission also sees the applications that contain it. To create or change a
	// permission or set, an owner must also be a registrant. Only admins change providers.
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
	// Parameters are passed to the provider; the provider's type defines the keys.
	Parameters map[string]string `json:"parameters,omitempty"`
}

// PermissionSet is an ordered group of permissions; pods request sets.
type PermissionSet struct {
	Meta
	Permissions []string `json:"permissions"`
	// Pods are patterns of the pods that may request the set. An empty list matches no
	// pod. A request of another pod is answered 403 with Field "set".
	Pods []PodPattern `json:"pods,omitempty"`
	// NodeScoped is true when every provider of the set grants to nodes, so that
	// pods with hostNetwork may request it. Derived; read-only.
	NodeScoped bool `json:"nodeScoped"`
}

// PodPattern matches pods; * matches any characters. An empty Cluster or
// ServiceAccount matches every value.
type PodPattern struct {
	Cluster string `json:"cluster,omitempty"`
	// Namespace is required; * allows every namespace.
	Namespace      string `json:"namespace"`
	ServiceAccount string `json:"serviceAccount,omitempty"`
}

// Paths: GET (list, with limit, continue and search) and POST on
// /v1/{providers,permissions,permissionsets}; GET, PUT and DELETE on
// /v1/.../{name}; GET /v1/audit lists changes.

// Error is the body of every answer with status 400 or above.
type Error struct {
	// Reason is one word: BadRequest, NotFound, MethodNotAllowed, Conflict, TooLarge, Unauthorized,
	// Forbidden, PreconditionRequired, PreconditionFailed, TooManyRequests, Unavailable.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Field is the invalid field of the body, as a JSON path, or the invalid query parameter. It is
	// `body` or `path` if that is invalid as a whole, and empty if the error is about no field.
	Field string `json:"field,omitempty"`
}
