// Package altershield is the client of the AlterShield server: configuration,
// signatures, calls, and the parsing of callbacks.
//
// The protocol was read from the source of the published server (Java, 2023-12
// and 2024-01), and then compared with a running one (docs/change/altershield.md).
// Where a running server differs, this package is wrong.
//
// A call returns an answer, a *ResultError (the server rejected the call) or a
// *CallError (not made, or no usable answer). After a lost answer a retry can do harm: each
// start creates a new node, and a second finish is rarely judged. Client therefore
// retries these calls only if the request was not sent, and MayHaveTakenEffect reports
// whether a failed call may have had an effect at the server.
package altershield
