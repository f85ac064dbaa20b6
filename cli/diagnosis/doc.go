// Package diagnosis decides what `kubectl breakwater` says: what state a release is in,
// why something is refused, waits or is stuck, and the ways out. All functions are pure:
// the commands gather the objects.
package diagnosis
