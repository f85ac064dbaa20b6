// Package budget is the webhook of PodUnavailableBudgets: it finds out what a
// request would do to which pods, charges the budgets that cover them, and
// refuses what does not fit. What is decided is in internal/budget; how many
// requests share one write is in internal/groupcommit.
//
// It is the one handler that writes before it answers: a charge. It is keyed by
// the pod and the operation, so that a request which is asked twice costs once,
// and it is given back where it is known that the answer was not heard.
package budget
