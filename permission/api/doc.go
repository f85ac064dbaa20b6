// Package api is the wire of the permission centre: what its REST interface
// takes and gives under /v1, in JSON. The init-action-server, the finalizer
// controller, the command line and a console speak it; it imports nothing of
// theirs and nothing of the centre's.
package api
