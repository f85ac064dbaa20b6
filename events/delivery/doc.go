// Package delivery sends events to the Broker over HTTP.
//
// A Target knows the Broker's address and follows its changes. A Sender queues
// events and posts them to it: Send returns at once and retries for a bounded
// time, Deliver posts once and reports whether the Broker accepted the event.
// Package delivery/broker creates both for the Broker of ConfigMap config-broker.
package delivery
