// Package altershielddouble is a test double of the AlterShield server for tests, the
// demo and benchmarks. It is an HTTP server with orders, nodes, checks, signed
// callbacks and the known deviations of the real server. Use it as a library
// (NewDouble, Handler) or as an image (package cmd, configured by environment
// variables).
//
// Its behavior is taken from the source of the published server (Java, 2023-12
// and 2024-01) and from runs of it (docs/change/altershield.md). The double and
// the client have the same authors, so a test against the double proves only that
// the client agrees with their reading of the source. If a real server differs,
// the real server is right.
//
// # Behavior of the server
//
// The server binds and validates a call (101), checks its signature (102) and
// then executes it. A body that cannot be parsed is answered with HTTP 400.
// Every other answer is HTTP 200 with {success,resultCode,msg,domain},
// including nulls. Numbers may be strings; lengths are UTF-8 bytes. A creator
// of 57 to 128 bytes passes validation and is answered with 901.
//
//	state of the node      finish                       retrieve of the stage
//	PRE_AOP_SUBMIT         103                          fail (the check runs)
//	PRE_AOP_FINISH         POST check begins            pass or fail
//	PRE_AOP_FAIL, TIMEOUT  POST check begins            fail
//	POST_AOP_SUBMIT        103                          fail (the check runs)
//	POST_AOP_FINISH        accepted, no check begins    pass or fail
//	POST_AOP_FAIL, TIMEOUT accepted, no check begins    fail
//
// A finish after a judged POST check is called back again, with the same verdict, at the
// rate secondFinish of the script.
//
// A synchronous check (submitAndStartChangeExecOrder) is rejected with 103
// except in a scene of generation 1. It takes checkTimeout and ends with a
// timeout, which is a pass without rules: the published server never has a
// verdict in time. A script rule with step RELEASE overrides this. A repeated
// call checks the same node again. After such a check has completed, retrieve
// returns pass, also if its verdict was fail.
//
// Every start creates a new node. A batch of an unknown order is answered with
// 101. A check that timed out or failed with an exception is called back as a
// pass without rules. A callback is sent once; its answer is ignored.
//
// # Admin API
//
// Platforms, types of change and scenes can be created as in the server: the double has
// the calls under /meta that altershield/setup makes. They have no authentication. With
// Options.Empty nothing exists before; a new scene is unknown to calls for
// Options.SceneCache. The server answers faults outside of its error handling with HTTP
// 500 (a repeated createSequence, every fault of platform/create), others with 101 or 901.
//
// # Control interface
//
//	PUT    /double/script   sets the script (204, or 400 with the mistake)
//	GET    /double/script   shows it
//	GET    /double/log      calls and callbacks with times; ?order=part of an order id
//	GET    /double/nodes    nodes, likewise; GET /double/orders all orders
//	DELETE /double          deletes orders, nodes, log, script, metadata and the file's content
//	GET    /double/health   200
//
// Persist (STATE_FILE) stores all of it in a file, as the server does in a
// database: a killed double continues from its last state.
//
// # Scripts
//
// An empty script, {}, passes every check immediately. The first matching rule
// decides; a check without a matching rule has the default behavior. The fields
// of match are stage, step, batchNo, pod (with * and ?), order, namespace and
// workload; nth and times count the matching checks. The POST check of the
// third pod fails (one pod per batch):
//
//	{"checks": [{"match": {"stage": "POST", "batchNo": 2},
//	  "then": {"verdict": "fail", "rules": [
//	    {"name": "error rate", "verdict": "FAIL", "msg": "5xx above 1 %", "url": "http://example.com/r/1"}]}}]}
//
// The same by counting, which also works if a batch is started twice:
//
//	{"checks": [{"match": {"stage": "POST"}, "nth": 3, "then": {"verdict": "fail"}}]}
//
// All PRE checks fail; all checks take 2 s and are called back twice, 5 s
// apart, so the copies are out of order:
//
//	{"checks": [{"match": {"stage": "PRE"}, "then": {"verdict": "fail"}}]}
//	{"default": {"delay": "2s", "copies": 2, "copyEvery": "5s"}}
//
// All verdicts as CloudEvents (binary, structured or batched), one of them with
// a verdict for a single pod:
//
//	{"default": {"as": "binary"}}
//	{"default": {"as": "structured", "verdict": "fail", "message": "find error",
//	  "podResults": [{"pod": "sleep-1", "verdict": "fail", "message": "find error"}]}}
//
// Other defaults, each alone: a wrong signature, an unknown node, a check that
// never ends, a lost callback, a callback before the answer to the start, an
// old timestamp, a judged pass without rules, a check that ends with an
// exception, an unknown verdict:
//
//	{"badSignature": true}   {"unknownNode": true}   {"never": true}   {"lost": true}   {"early": true}
//	{"skew": "-10m"}         {"noRules": true}       {"ending": "exception"}            {"verdict": "xyz"}
//
// Checks of 10 s in a scene whose timeout is 3 s:
//
//	{"checkTimeout": "3s", "default": {"delay": "10s"}}
//
// The release check of one workload fails, and that of others is slow:
//
//	{"checks": [{"match": {"step": "RELEASE", "workload": "web"}, "then": {"verdict": "fail",
//	  "rules": [{"name": "freeze", "verdict": "FAIL", "msg": "no releases on Friday"}]}},
//	  {"match": {"step": "RELEASE"}, "then": {"verdict": "pass", "delay": "1s"}}]}
//
// Faults (901, 404, 500, 502, garbage, reset, slow) happen before the call is
// executed, or after it ("after": true: only the answer is lost). The answers
// to the first two finishes are lost, then all calls are slow:
//
//	{"faults": [{"action": "submitChangeFinishNotify", "times": 2, "fault": "reset", "after": true},
//	  {"fault": "slow", "delay": "1s"}]}
package altershielddouble
