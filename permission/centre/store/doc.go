// Package store is the database of the permission centre: registered objects,
// applications with their grants, history, audit, pods that ended, clusters, and the
// time of each provider's next call. With few exceptions (type dialect), the same schema
// and statements serve SQLite (one replica) and PostgreSQL (many). A change and the steps
// that follow from it are written in the same transaction, so neither exists without the
// other.
//
// Columns keep their first names. These differ from the names in Go:
//
//	applications.asked  AttemptBegan: when the last attempt began
//	applications.going  RevokeRequested
//	clusters.held       Unconfirmed: the number of unconfirmed applications
//	grants.keys         KeysUsed: the number of earlier idempotency keys
//	grants.lease        RunID: the id of the run of a step
//	grants.touched      MaybeGranted
//	pace.next           the time of the next call to a provider (SetNextCall)
package store
