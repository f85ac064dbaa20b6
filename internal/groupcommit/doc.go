// Package groupcommit lets requests that arrive together share one write of the
// object that they are decided by, as a database groups commits.
//
// Every answer is proven: by the success of the compare-and-swap that it was
// decided with, or, where there was nothing to write, by a live read. So no
// request is let through, and none refused, on what only a cache says; and a
// conflict refuses nothing: the same group is decided again on what is there
// now.
//
// A decision has to be idempotent: when the outcome of a write is unknown (a
// timeout, a crash between the write and the answer), the same request is
// decided again on an object that may hold it already.
package groupcommit
