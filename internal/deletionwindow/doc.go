// Package deletionwindow decides how many deletions of pods a PodDeletionFlowControl
// allows: in no window of a rule's interval more than its limit.
//
// It errs on the safe side. A deletion counts until its whole cell has left the
// window, so that a window is longer by up to one cell (1/32 of the interval, or
// a second). It is also longer by two clock skews, because the clock of one
// replica may be slow and that of another fast.
//
// A deletion is counted at the local time of the replica, but never before the
// last committed time: time does not go back when another replica decides. The
// whole state is in the status, whose size is bounded. All functions are pure.
package deletionwindow
