// Package server is the init-action-server: it gets pods their permissions
// before their app containers start. It keeps nothing: what it knows it reads
// from pods, from the record of the breaker and from the permission centre, so
// any number of replicas may run and any of them may be killed.
//
//	POST /v1/authorize                      from init containers; blocks until it is decided
//	GET  /v1/pods/{namespace}/{name}        why a pod waits
//	POST /v1/pods/{namespace}/{name}/reset  closes the breaker of a pod
//
// Who asks is known by a token (TokenReview), which for pods names the pod and
// its UID. What a pod gets follows from the pod as the API server has it, never
// from the request.
//
// One call does what one pod needs, step after step: Decide says which step from
// the facts, and is pure.
package server
