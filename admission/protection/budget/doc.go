// Package budget is the webhook of PodUnavailableBudgets. It finds the pods that a
// request makes unavailable, charges the budgets that cover them, and denies
// requests that do not fit. Package internal/budget decides; package
// internal/groupcommit shares one write among concurrent requests.
//
// It writes the charge before it answers. A charge is keyed by pod and operation, so
// that a repeated request costs once. It is refunded if the request is denied later
// or the API server no longer waits for the answer.
package budget
