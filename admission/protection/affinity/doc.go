// Package affinity forwards the requests of a namespace that may charge a budget to one replica
// of the webhook. That replica decides them for the budgets and for flow control.
//
// A charge is a write of the budget. Writes by two replicas conflict:
// without affinity nearly half of them failed. One replica can decide all waiting
// requests with a single write.
//
// Affinity is an optimization, and decisions are correct without it. Each replica
// selects the deciding one from the EndpointSlices of the Service, and two may
// select differently for a short time. If the selected replica does not answer in
// time, the replica that received the request decides it.
package affinity
