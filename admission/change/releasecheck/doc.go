// Package releasecheck asks the server before a release is admitted. It answers for
// vrelease.kb.io and is disabled unless OpsConfigInfo release-check is enabled.
//
// The server is not asked about changes of our controller, rollbacks, repairs and
// updates that the suspension denies. A repair is exempt because its user is recorded,
// and because a rule that detects the fault would deny the fix.
//
// The answer is stored in a ReleaseCheck, so that repeated requests get one answer: a
// pass is valid until it expires, any other answer for AnswerTTL. The order id follows
// from cluster, namespace, workload, version and attempt, so all replicas use one order.
// Response time, concurrency and calls to an unreachable server are limited.
package releasecheck
