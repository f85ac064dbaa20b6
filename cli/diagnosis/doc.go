// Package diagnosis decides the answers of `kubectl breakwater`: the state of a release, why
// a request is denied or an object waits or is stuck, the ways out, and what is wrong with
// the installation. All functions are pure: the commands gather the objects.
package diagnosis
