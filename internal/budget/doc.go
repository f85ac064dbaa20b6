// Package budget decides about PodUnavailableBudgets: which pods one covers,
// which of them are available, how many more may become unavailable, and
// whether a request may be charged. All of it is pure; the webhook
// (admission/protection/budget) and the controller (reconciler/protection/budget) gather and write.
//
// What is guarded is an invariant: available pods that are not charged, less
// what may still be charged, are never fewer than desired. The webhook charges
// before a request passes; the controller keeps a charge until the watch shows
// what became of its pod.
package budget
