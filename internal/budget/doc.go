// Package budget decides about PodUnavailableBudgets: which pods a budget covers,
// which of them are available, how many more may become unavailable, and whether
// a request may be charged. It is pure; the webhook (admission/protection/budget)
// and the controller (reconciler/protection/budget) read and write.
//
// The invariant: if UnavailableAllowed > 0, then
// (available pods without a charge) − UnavailableAllowed ≥ DesiredAvailable.
// The webhook charges before it allows a request; the controller keeps a charge until the
// watch shows its outcome.
package budget
