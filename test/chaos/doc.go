// Package chaos releases Deployments of simulated pods, deletes and evicts pods
// that a budget covers, and replaces pods with a permission set, while it kills
// and pauses components of the system: controllers, webhooks, functions, permission
// centre, dispatcher, Broker and the double of the server. The double answers
// some calls with errors. In a run every target is killed at least once, and a
// third of them is paused. Afterwards:
//
//   - The end of every release agrees with the verdicts that the server sent. No
//     verdict is lost or invented, and no object changes any more.
//   - Breakwater recorded every call to the server before it made the call.
//   - Earlier releases have ended.
//   - No admitted deletion took the budget below its minimum, and no pod was
//     deleted without an admitted request. All charges are removed, and the budget
//     admits exactly what it allows.
//   - Exactly the existing pods with a permission set have a grant at the
//     provider, no grant was given twice, and all are revoked in the end.
//
// The verdicts are read from the log of the double, not from its script,
// because a check may start twice and a callback may fail. A callback that was
// answered with 200 must count, whichever process is killed afterwards. A
// callback without an answer may count or not. A release without verdicts follows
// setting no-verdict (docs/change/order.md).
//
// The faults, the verdicts and the clients' requests follow from the seed
// (schedule.go, plan.go); their timing depends on the cluster. The expected
// results are pure functions with unit tests (oracle.go, evidence.go,
// availability.go). The run (build tag e2e) is `make test-chaos`, with a pinned
// seed, or `make chaos`, with a random one:
//
//	CHAOS_SEED              seed of the run; 0: random
//	CHAOS_RELEASES          minimum number of releases (8)
//	CHAOS_PODS              pods of each Deployment (5)
//	CHAOS_DEPLOYMENTS       number of Deployments that are released in parallel (4)
//	CHAOS_LIMIT             time limit of the run (8m)
//	CHAOS_DURATION          minimum time during which releases begin (0s)
//	CHAOS_INTERVAL          mean time between two faults (2s)
//	CHAOS_ROUNDS            rounds of faults (1; 0: until the releases have ended)
//	CHAOS_KILLS_PER_TARGET  maximum number of kills of each target (2; 0: no limit)
//	CHAOS_SERVER_KILLS      the same for the double and the permission centre (1)
//
// A failed run writes its log and state to bin/chaos.
package chaos
