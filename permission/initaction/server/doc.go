// Package server is the init-action-server: it requests the permissions of pods
// before their app containers start. It has no state of its own: it reads pods,
// the breaker's ConfigMaps and the permission centre, so any number of replicas
// may run and may be killed.
//
//	POST /v1/authorize                      called by init containers; blocks until the decision
//	GET  /v1/pods/{namespace}/{name}        says why a pod waits
//	POST /v1/pods/{namespace}/{name}/reset  closes the breaker of a pod
//
// TokenReview authenticates the caller; the token of a pod is bound to its name
// and UID. The pod in the API server, not the request, determines what it gets.
// A call runs one action after the other; Decide is a pure function that selects
// the next action.
package server
