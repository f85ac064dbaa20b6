// Package client is the init container: it asks the init-action-server and
// exits with its answer. It imports the standard library and package protocol
// only, so that the image stays small and rarely changes.
package client
