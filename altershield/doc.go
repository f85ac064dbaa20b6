// Package altershield is the client of the AlterShield server: configuration,
// signing, the calls, and the parsing of what the server calls back.
//
// Every fact about the protocol was read in the published server (Java,
// 2023-12 and 2024-01), not observed on a running one: where a real server
// disagrees, the real server is right.
//
// A call ends in one of three ways: an answer, a *ResultError (the server
// answered and said no) or a *TransportError (no usable answer). A lost answer
// is the dangerous one: starts make a new node each time, and a second finish
// is never judged. Client therefore never sends these twice on its own, and
// MayHaveReached tells the caller whether the server can have seen a call.
package altershield
