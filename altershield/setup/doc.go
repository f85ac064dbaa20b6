// Package setup sets up an AlterShield server for a cluster with the server's admin API: the
// platform, the types of change, and the change scenes with their callback URL and time
// limits.
//
//	Observe        reads what the server has
//	Decide         compares it with what is desired (pure), and returns the missing actions
//	Apply          performs the actions
//	Prove          makes a signed call to the server
//	ProveCallback  makes a signed call to function callback
//
// The admin API is JSON under /meta. It has no authentication: who reaches the server can
// change it. It was read in the published server (2023-12 and 2024-01).
package setup
