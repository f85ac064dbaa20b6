// Package load tests part change with many releases at once: on the control plane of
// test/controlplane, with the functions, a Broker and the double of the server in the
// process of the tests. LOAD_RELEASES, LOAD_PODS and LOAD_LARGE replace the sizes; `make
// soak` uses 50 releases of 50 pods, and one of 1000.
package load
