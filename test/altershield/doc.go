// Package altershield is a double of the AlterShield server for tests, the
// demo and benchmarks: a real HTTP server with orders, nodes, checks, signed
// callbacks, and the server's oddities. As a library it is NewDouble and
// Handler; as an image it is the cmd below, configured by environment.
//
// It is written from facts read in the published server (Java, 2023-12 and
// 2024-01), by the same people who wrote the client. So a test against it
// proves that the client agrees with our reading, and not that a real server
// would: where a real server disagrees, the real server is right.
//
// # What it does as the server does
//
// A call is bound and validated (101), then its signature is checked (102),
// then the logic runs. A body that cannot be read is HTTP 400; every other
// answer is HTTP 200 with {success,resultCode,msg,domain}, nulls included.
// Numbers may be strings; lengths are UTF-8 bytes; a creator of 57 to 128
// bytes gets past validation and ends in 901.
//
//	state of the node      finish                       retrieve of the stage
//	PRE_AOP_SUBMIT         103                          fail (the check runs)
//	PRE_AOP_FINISH         POST check begins            pass or fail
//	PRE_AOP_FAIL, TIMEOUT  POST check begins            fail
//	POST_AOP_SUBMIT        103                          fail (the check runs)
//	POST_AOP_FINISH        accepted, never called back  pass or fail
//	POST_AOP_FAIL, TIMEOUT accepted, never called back  fail
//
// A synchronous check (submitAndStartChangeExecOrder) is refused with 103 but
// in a scene of generation 1. It takes checkTimeout and ends as a pass without
// rules, which is a time-out: the published server never has a verdict in time.
// A rule of the script with step RELEASE says otherwise. Asked again, it checks
// the same node again; and once it came to its end retrieve says pass, whatever
// the verdict was.
//
// Every start makes a new node. A batch of an unknown order is 101. A check
// that timed out or threw is called back as a pass without rules. A callback
// is sent once: its answer is not looked at.
//
// # Its own interface
//
//	PUT    /double/script   sets the script (204, or 400 with the mistake)
//	GET    /double/script   shows it
//	GET    /double/log      calls and callbacks with times; ?order=part of an order id
//	GET    /double/nodes    nodes, likewise; GET /double/orders all orders
//	DELETE /double          forgets everything, the script too, and its file
//	GET    /double/health   200
//
// Persist (STATE_FILE) keeps all of it in a file, as the server does in a
// database: a double that was killed goes on where it was.
//
// # Scripts
//
// An empty script, {}, passes every check at once. Rules are tried in order;
// what none matches behaves as default says. Match knows stage, step, batchNo,
// pod (with * and ?), order, namespace and workload; nth and times count the
// checks that match. The POST check of the third pod fails (one pod a batch):
//
//	{"checks": [{"match": {"stage": "POST", "batchNo": 2},
//	  "then": {"verdict": "fail", "rules": [
//	    {"name": "error rate", "verdict": "FAIL", "msg": "5xx above 1 %", "url": "http://example.com/r/1"}]}}]}
//
// The same by counting, which also fits a batch that is started twice:
//
//	{"checks": [{"match": {"stage": "POST"}, "nth": 3, "then": {"verdict": "fail"}}]}
//
// All PRE checks fail; and all checks take 2 s and are then called back twice,
// 5 s apart, which is out of order, too:
//
//	{"checks": [{"match": {"stage": "PRE"}, "then": {"verdict": "fail"}}]}
//	{"default": {"delay": "2s", "copies": 2, "copyEvery": "5s"}}
//
// All verdicts as CloudEvents (binary, structured or batched), one with a
// verdict of its own for a pod:
//
//	{"default": {"as": "binary"}}
//	{"default": {"as": "structured", "verdict": "fail", "message": "find error",
//	  "podResults": [{"pod": "sleep-1", "verdict": "fail", "message": "find error"}]}}
//
// Other defaults, each alone: a signature that does not fit, an unknown node,
// no end, an end without a callback, a callback before the start is answered,
// an old timestamp, a pass without rules though judged, a check that throws, a
// word that nobody knows:
//
//	{"badSignature": true}   {"unknownNode": true}   {"never": true}   {"lost": true}   {"early": true}
//	{"skew": "-10m"}         {"noRules": true}       {"ending": "exception"}            {"verdict": "xyz"}
//
// Checks of 10 s in a scene whose timeout is 3 s:
//
//	{"checkTimeout": "3s", "default": {"delay": "10s"}}
//
// A release is failed while it is asked about, and another is answered slowly:
//
//	{"checks": [{"match": {"step": "RELEASE", "workload": "web"}, "then": {"verdict": "fail",
//	  "rules": [{"name": "freeze", "verdict": "FAIL", "msg": "no releases on Friday"}]}},
//	  {"match": {"step": "RELEASE"}, "then": {"verdict": "pass", "delay": "1s"}}]}
//
// Faults (901, 404, 500, 502, garbage, reset, slow) come before the server has
// done its part, or after it ("after": true: only the answer is lost). The
// first two finishes are lost with their answers, then all calls are slow:
//
//	{"faults": [{"action": "submitChangeFinishNotify", "times": 2, "fault": "reset", "after": true},
//	  {"fault": "slow", "delay": "1s"}]}
package altershield
