// Package openkruise tests budgets beside the manager of OpenKruise, whose own budgets are
// turned off as docs/protection/openkruise.md describes. It runs on a control plane of its
// own, because other tests install parts of OpenKruise's CRDs. A simulated kubelet
// restarts containers.
package openkruise
