// Package releasecheck asks the server about a release before it is admitted,
// and answers for vrelease.kb.io. It is off unless OpsConfigInfo release-check
// is enabled.
//
// A release is a creation or a changed pod template of a person or a program;
// what our controller does, a way back to a version that succeeded, a repair
// and what the suspension refuses anyway are not asked about. Not a repair,
// because a person has answered for it by name, and because a rule that sees
// the fault would refuse its cure.
//
// The answer is kept in a ReleaseCheck. It is what makes one request have one
// answer: a pass counts for as long as it is kept, any other answer is given
// again for a while (Again). The question's id follows from cluster, namespace,
// workload, version and attempt, so that the server has one order of it,
// whichever webhook asks and however often.
//
// The rest is bounded: the time of an answer (budget), the questions at a time
// (atOnce), and what the client lets through to a server that is down.
package releasecheck
