// Command conformance tests a server: AlterShield, or any that accepts its JSON
// calls and sends callbacks in JSON or as the CloudEvent
// dev.breakwater.changepod.verdict.v1. It uses Breakwater's own client,
// callback parser and verdict decision. It prints each deviation from
// docs/change/conformance.md and the outcome of each pod.
//
//	go run ./test/conformance -url http://127.0.0.1:8080 -token-file token
//
// The exit code is 0 if all required statements are true, 1 if one is false,
// and 2 if the server could not be tested.
package main
