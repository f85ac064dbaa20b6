// Command conformance tries a judge: any server that speaks AlterShield's JSON
// and calls back in that form or with the CloudEvent
// dev.breakwater.changepod.verdict.v1. It plays Breakwater's side with
// Breakwater's own code (the client, the reading of callbacks, the decision
// which verdict counts) and says what the judge does otherwise than
// docs/change/conformance.md has it, and what its verdicts count as.
//
//	go run ./test/conformance -url http://127.0.0.1:8080 -token-file token
//
// It exits with 0 when nothing that Breakwater depends on is wrong, with 1 when
// something is, and with 2 when it could not be tried.
package main
