// Package gitops proves with kstatus, with the Lua runtime of Argo CD and with CEL that
// tools of GitOps read a held release as held and a running one as in progress.
//
// The objects are those that the ChangeWorkload reconciler derives
// (reconciler/change/changeworkload/testdata/kstatus). It is a module of its own,
// which keeps the libraries out of the product's go.mod.
package gitops
