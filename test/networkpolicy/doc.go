// Package networkpolicy enforces NetworkPolicies on the embedded cluster while tests run,
// as the CNI of a production cluster does: its own CNI does not. The node routes every
// packet between pods, so rules of nftables in its network namespace suffice. Connections
// of the node itself, such as probes and requests of the API server, are not restricted.
package networkpolicy
