// Package groupcommit lets concurrent requests about one object share one write of
// it, like the group commit of a database.
//
// Every answer is confirmed by a successful compare-and-swap or, if there is
// nothing to write, by a live read. So no request is allowed or denied because of
// a stale cache. After a conflict, the group is decided again on the new state.
//
// A decision must be idempotent: after a write with unknown outcome (a timeout, a
// crash before the answer) the request is decided again on an object that may
// contain it already.
package groupcommit
