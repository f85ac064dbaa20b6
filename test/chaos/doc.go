// Package chaos releases Deployments of simulated pods, again and again, while
// the parts of the system are killed at random: controller, webhook, functions,
// dispatcher and Broker, and the double of the server. Afterwards every release
// has ended as the verdicts say that the server really spoke; no verdict is
// lost, none is invented, and nothing moves any more.
//
// What the server spoke is read from the log of the double, not from what it
// was told to say: a check that it began twice, or a callback that met nobody,
// is what it is. A callback that was answered with 200 is a promise: it counts,
// whoever dies afterwards. One whose answer nobody saw may count or not. A
// release that hears nothing ends as the truth table of DESIGN.md says.
//
// The oracle is in oracle.go and evidence.go, with truth tables of its own. The
// run (build tag e2e) is `make test-chaos`, a short one, and `make chaos`:
//
//	CHAOS_SEED      repeats the verdicts and the order of the kills
//	CHAOS_RELEASES  how many releases (8)
//	CHAOS_PODS      pods of each Deployment (5)
//	CHAOS_LANES     how many Deployments are released at a time (4)
//	CHAOS_LIMIT     how long all of it may take (8m)
//	CHAOS_PAUSE     the mean time between two kills (5s)
//	CHAOS_DEATHS    how often each part is killed at most (2; 0: no limit)
//
// A run that fails leaves what it saw in bin/chaos.
package chaos
