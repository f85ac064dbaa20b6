// Package budget is the webhook of PodUnavailableBudgets. It finds the pods that a
// request makes unavailable, charges the budgets that cover them, and denies
// requests that do not fit. Package internal/budget decides; package
// internal/groupcommit shares one write among concurrent requests.
//
// It writes the charge before it answers. A charge is keyed by the pod and by whether the
// request deletes it, so that a repeated request, or an eviction after a deletion, costs
// once. It is refunded if the request is denied later, also because no answer came in time
// and failurePolicy is Fail.
package budget
