// Package store keeps what the permission centre knows: registered objects,
// applications with their grants, history, audit and the providers' pace. One
// schema and one set of statements serve SQLite (one replica) and PostgreSQL
// (many). Every change happens in a transaction that also enqueues the work
// which follows from it, so neither can be there without the other.
package store
