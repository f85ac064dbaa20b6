// Package store is the database of the permission centre: registered objects,
// applications with their grants, history, audit, pods that ended, clusters, and the
// time of each provider's next call. With few exceptions (type dialect), the same schema
// and statements serve SQLite (one replica) and PostgreSQL (many). A change and the steps
// that follow from it are written in the same transaction, so neither exists without the
// other.
package store
