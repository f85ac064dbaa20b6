// Package chaos releases Deployments of simulated pods repeatedly while it
// kills parts of the system at random: controller, webhook, functions,
// dispatcher, Broker and the double of the server. Afterwards the end of every
// release must agree with the verdicts that the server sent. No verdict is lost
// or invented, and no object changes any more.
//
// The verdicts are read from the log of the double, not from its script,
// because a check may start twice and a callback may fail. A callback that was
// answered with 200 must count, whichever process is killed afterwards. A
// callback without an answer may count or not. A release without verdicts follows setting
// no-verdict (docs/change/order.md).
//
// The oracle is in oracle.go and evidence.go and has its own truth tables. The
// run (build tag e2e) is `make test-chaos` (short) or `make chaos`:
//
//	CHAOS_SEED            repeats the verdicts and the order of the kills
//	CHAOS_RELEASES        number of releases (8)
//	CHAOS_PODS            pods of each Deployment (5)
//	CHAOS_DEPLOYMENTS     number of Deployments that are released in parallel (4)
//	CHAOS_LIMIT           time limit of the run (8m)
//	CHAOS_PAUSE           mean time between two kills (5s)
//	CHAOS_KILLS_PER_PART  maximum number of kills of each part (2; 0: no limit)
//
// A failed run writes its log and state to bin/chaos.
package chaos
