// Package api defines the JSON types of the permission centre's REST interface
// under /v1. The centre, its clients in the cluster (package centreclient) and
// consoles use it. It imports no other package of Breakwater. Its comments are the
// descriptions in the OpenAPI document: run go run
// ./permission/centre/rest/openapigen after a change.
package api
