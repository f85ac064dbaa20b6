// Package deletionwindow decides how many deletions of pods a PodDeletionFlowControl
// lets through: in no window of a rule's interval more than its limit.
//
// It is exact in the safe direction. A deletion is counted in a bucket and
// counts as long as the last moment of the bucket lies in the window, so that
// an interval is longer by at most one bucket (1/32 of it, or a second). It is longer by two clock skews too: the clock of one
// replica may be late and that of another early.
//
// What is let through is counted at the time of the replica's clock, but never
// before the last one that was committed: time does not go back when another
// replica, or another leader, decides. Everything that counts is in the status, so that a
// restart forgets nothing, and the status is bounded whatever the rules are.
//
// All functions are pure and leave their arguments alone.
package deletionwindow
