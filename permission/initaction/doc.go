// Package initaction is the init container's whole work, and the words that it
// and the init-action-server have in common. It imports the standard library
// only: the container's image stays small, and nothing in it needs to change
// when anything else does.
//
// The interface is immutable: environment in, one POST, exit code out, the last
// words in the termination message.
package initaction
