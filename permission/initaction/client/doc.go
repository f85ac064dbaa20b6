// Package client is the code of the init container. It calls the
// init-action-server until the permissions are granted or denied. It imports only
// the standard library and package protocol, so that the image stays small and
// rarely changes.
package client
