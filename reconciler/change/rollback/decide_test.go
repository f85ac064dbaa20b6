package rollback

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

var now = time.Unix(1_700_000_000, 0)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// underWay is a running release with one pod that has failed to pull its image for minutes.
func underWay() Input {
	return Input{
		Now: now, Settings: settings.Default(),
		Release: v1alpha1.Release{Version: "bad", Attempt: 4}, Phase: v1alpha1.ReleaseRunning,
		Current: true, ReplacesGradually: true,
		Pods: []Pod{{Name: "web-1", Created: ago(3 * time.Minute), Fault: "ImagePullBackOff"}},
	}
}

// failed is a release that failed its check, with automatic rollback on.
func failed() Input {
	in := underWay()
	in.Phase, in.Reason, in.PausedOrHeld = v1alpha1.ReleaseSuspend, v1alpha1.ReasonCheckFailed, true
	in.Settings.AutomaticRollback = true
	in.Pods = []Pod{{Name: "web-1", Created: ago(3 * time.Minute), Ready: true, Changed: ago(3 * time.Minute)}}
	return in
}

// crashed is a running release whose pods have crashed three times: some have been Ready for a time, others are in back-off.
func crashed(ready int, since time.Duration, backOff int) Input {
	in := underWay()
	in.Pods = slices.Concat(
		slices.Repeat([]Pod{{Name: "web-1", Ready: true, Created: ago(time.Hour), Changed: ago(since), Restarts: 3}}, ready),
		slices.Repeat([]Pod{{Name: "web-2", Created: ago(time.Hour), Changed: ago(time.Minute), Fault: "CrashLoopBackOff", Restarts: 3}}, backOff))
	return in
}

func TestARollbackIsDue(t *testing.T) {
	const heals, rollsBack, asked = v1alpha1.RollbackSelfHealing, v1alpha1.RollbackVerdict, v1alpha1.RollbackRequested
	but := func(in Input, f func(*Input)) Input { f(&in); return in }
	for name, tc := range map[string]struct {
		in   Input
		want v1alpha1.RollbackKind
		// drop and limit are words of the message; empty: neither.
		drop, limit string
		// again: time alone can change the answer.
		again bool
	}{
		"when its pod cannot pull its image for longer than the threshold": {in: underWay(), want: heals},
		"when its pod is in a crash loop": {
			in: but(underWay(), func(in *Input) { in.Pods[0].Fault, in.Pods[0].Restarts = "CrashLoopBackOff", 4 }), want: heals},
		"when its pod finds no node": {
			in: but(underWay(), func(in *Input) { in.Pods[0].Fault = "Unschedulable" }), want: heals},
		"when the server did not accept its order": {
			in: but(underWay(), func(in *Input) { in.Phase = v1alpha1.ReleaseFailed }), want: heals},
		"when its batch was not full in time": {
			in: but(underWay(), func(in *Input) { in.Phase = v1alpha1.ReleaseNoNewBatch }), want: heals},
		"when a pod that was Ready is in a crash loop": {
			in: but(underWay(), func(in *Input) {
				in.Pods[0] = Pod{Created: ago(3 * time.Minute), Changed: ago(time.Second), Fault: "CrashLoopBackOff", Restarts: 3}
			}), want: heals},
		"when others became Ready longer ago than the threshold": {
			in: but(underWay(), func(in *Input) {
				in.Pods = append(in.Pods, Pod{Ready: true, Created: ago(5 * time.Minute), Changed: ago(4 * time.Minute)})
			}), want: heals},

		"when the pods of a crash loop are Ready in turns": {
			in: but(underWay(), func(in *Input) {
				in.Pods = []Pod{{Created: ago(time.Hour), Changed: ago(time.Minute), Fault: "CrashLoopBackOff", Restarts: 15},
					{Ready: true, Created: ago(time.Hour), Changed: ago(time.Second), Restarts: 15}}
			}), want: heals},
		"when the pods of a crash loop are Ready in turns, created by a kind that updates in place": {
			in: but(underWay(), func(in *Input) {
				in.Began = ago(time.Hour)
				in.Pods = []Pod{{Created: ago(time.Hour), Changed: ago(time.Minute), Fault: "CrashLoopBackOff", Restarts: 15},
					{Ready: true, Created: ago(time.Hour), Changed: ago(time.Second), Restarts: 15}}
			}), want: heals},

		"when a few pods of a crash loop are Ready in turns": {in: crashed(3, time.Minute, 17), want: heals},
		"when as many crashed pods are Ready as not":         {in: crashed(5, time.Minute, 5), want: heals},
		"when a few of many crashed pods are Ready, and others never crashed": {
			in: but(crashed(3, time.Minute, 17), func(in *Input) {
				in.Pods = append(in.Pods, slices.Repeat([]Pod{{Name: "web-3", Ready: true, Created: ago(time.Hour), Changed: ago(time.Hour)}}, 30)...)
			}), want: heals},
		"when crashed pods became Ready long ago":          {in: crashed(9, 3*time.Minute, 1), want: heals},
		"not while most crashed pods are Ready again":      {in: crashed(9, time.Minute, 1), again: true},
		"not while one more crashed pod is Ready than not": {in: crashed(5, time.Minute, 4), again: true},

		"when each of its pods was rejected by its node": {
			in: but(underWay(), func(in *Input) {
				rejected := Pod{Created: ago(3 * time.Minute), Fault: "Failed", Ended: true}
				in.Pods = []Pod{rejected, rejected, {Created: now, Fault: "Pending"}}
			}), want: heals},
		"when a pod was evicted, and another fails beside one that is Ready": {
			in: but(underWay(), func(in *Input) {
				in.Pods = append(in.Pods, Pod{Created: ago(10 * time.Minute), Fault: "Failed", Ended: true},
					Pod{Ready: true, Created: ago(5 * time.Minute), Changed: ago(4 * time.Minute)})
			}), want: heals},

		"when its order failed its check": {
			in: but(failed(), func(in *Input) { in.Reason = v1alpha1.ReasonOrderCheckFailed }), want: rollsBack},

		"not before the threshold": {
			in: but(underWay(), func(in *Input) { in.Pods[0].Created = ago(119 * time.Second) }), again: true},
		"not before a threshold of its own": {
			in: but(underWay(), func(in *Input) { in.Settings.HealAfter = 4 * time.Minute }), again: true},
		"not when its pod runs and only starts slowly": {
			in: but(underWay(), func(in *Input) { in.Pods[0].Fault = "" }), again: true},
		"not while it makes progress": {
			in: but(underWay(), func(in *Input) {
				in.Pods = append(in.Pods, Pod{Ready: true, Created: ago(3 * time.Minute), Changed: ago(time.Minute)})
			}), again: true},
		"not when a pod that was Ready crashed a moment ago": {
			in: but(underWay(), func(in *Input) {
				in.Pods[0] = Pod{Created: ago(3 * time.Minute), Changed: ago(time.Second), Fault: "CrashLoopBackOff", Restarts: 1}
			}), again: true},
		"not when a pod with earlier updates in place failed to pull its image a moment ago": {
			in: but(underWay(), func(in *Input) {
				in.Began = ago(10 * time.Second)
				in.Pods[0] = Pod{Created: ago(time.Hour), Changed: ago(time.Second), Fault: "ErrImagePull", Restarts: 3}
			}), again: true},
		"when a pod with earlier updates in place fails since the release began": {
			in: but(underWay(), func(in *Input) {
				in.Began = ago(3 * time.Minute)
				in.Pods[0] = Pod{Created: ago(time.Hour), Changed: ago(time.Second), Fault: "CrashLoopBackOff", Restarts: 3}
			}), want: heals},
		"not while pods with earlier updates in place become Ready": {
			in: but(underWay(), func(in *Input) {
				in.Began = ago(time.Hour)
				in.Pods = append(in.Pods, Pod{Ready: true, Created: ago(2 * time.Hour), Changed: ago(time.Second), Restarts: 15})
			}), again: true},
		"not when a pod was evicted and the pod that replaced it is Ready": {
			in: but(underWay(), func(in *Input) {
				in.Pods = []Pod{{Created: ago(10 * time.Minute), Fault: "Failed", Ended: true},
					{Ready: true, Created: ago(6 * time.Minute), Changed: ago(5 * time.Minute)}}
			}), again: true},
		"not when its only Ready pod was evicted and the one that replaced it starts slowly": {
			in: but(underWay(), func(in *Input) {
				in.Pods = []Pod{{Created: ago(10 * time.Minute), Changed: ago(5 * time.Minute), Fault: "Failed", Ended: true},
					{Created: ago(5 * time.Minute), Changed: ago(5 * time.Minute)}}
			}), again: true},
		"not while it has no pod": {
			in: but(underWay(), func(in *Input) { in.Pods = nil }), again: true},
		"not when a pod finds no node or is not started by it, while another one is Ready": {
			in: but(underWay(), func(in *Input) {
				in.Pods = []Pod{{Created: ago(3 * time.Minute), Fault: "Unschedulable"}, {Created: ago(3 * time.Minute), Fault: "Pending"},
					{Ready: true, Created: ago(time.Hour), Changed: ago(50 * time.Minute)}}
			}), again: true},
		"not when a newer template was applied": {
			in: but(underWay(), func(in *Input) { in.Current = false })},
		"not when self-healing is off": {
			in: but(underWay(), func(in *Input) { in.Settings.SelfHealing = false })},
		"not when the strategy replaces no pod by itself, or all at once": {
			in: but(underWay(), func(in *Input) { in.ReplacesGradually = false })},
		"not when a user paused the rollout": {
			in: but(underWay(), func(in *Input) { in.PausedOrHeld = true })},
		"not when the rollout is complete": {
			in: but(underWay(), func(in *Input) { in.Complete = true })},
		"not when the release is a Success": {
			in: but(underWay(), func(in *Input) { in.Phase = v1alpha1.ReleaseSuccess })},
		"not when it is a baseline": {
			in: but(underWay(), func(in *Input) { in.Release.Attempt = 0 })},
		"not when it is a rollback itself": {
			in: but(underWay(), func(in *Input) { in.Last = &v1alpha1.Rollback{Attempt: 4} })},
		"again when the version was applied again": {
			in: but(underWay(), func(in *Input) { in.Last = &v1alpha1.Rollback{FromVersion: "bad", Attempt: 3, Times: 2} }), want: heals},
		"not a fourth time in a row": {
			in: but(underWay(), func(in *Input) { in.Last = &v1alpha1.Rollback{FromVersion: "bad", Attempt: 3, Times: 3} }), limit: "3 times in a row"},
		"rolled back three times, with a release between": {
			in: but(underWay(), func(in *Input) { in.Last = &v1alpha1.Rollback{FromVersion: "bad", Attempt: 2, Times: 3} }), limit: "3 times in a row"},
		"when another version was rolled back three times": {
			in: but(underWay(), func(in *Input) { in.Last = &v1alpha1.Rollback{FromVersion: "worse", Attempt: 3, Times: 3} }), want: heals},

		"when it failed its check and that is switched on": {in: failed(), want: rollsBack},
		"not by default": {
			in: but(failed(), func(in *Input) { in.Settings.AutomaticRollback = false })},
		"not when nothing is to be stopped": {
			in: but(failed(), func(in *Input) { in.Settings.Blocking = false })},
		"not when it is unjudged": {
			in: but(failed(), func(in *Input) { in.Reason = v1alpha1.ReasonOrderNotAccepted })},
		"not when the failed check was lost": {
			in: but(failed(), func(in *Input) { in.Reason = v1alpha1.ReasonFailedCheckLost })},
		"not when a rollback failed its check": {
			in: but(failed(), func(in *Input) { in.Last = &v1alpha1.Rollback{Attempt: 4, FromVersion: "worse"} })},
		"not a fourth time when it fails and comes back": {
			in: but(failed(), func(in *Input) { in.Last = &v1alpha1.Rollback{FromVersion: "bad", Attempt: 3, Times: 3} }), limit: "3 times in a row"},

		"when a person asks": {
			in: but(underWay(), func(in *Input) {
				in.Phase, in.Request = v1alpha1.ReleaseSuccess, &v1alpha1.RollbackRequest{User: "ann", Attempt: 4}
			}), want: asked},
		"when a person asks, from a rollback too": {
			in: but(failed(), func(in *Input) {
				in.Last, in.Request = &v1alpha1.Rollback{Attempt: 4}, &v1alpha1.RollbackRequest{User: "ann", Attempt: 4}
			}), want: asked},
		"not when a person asked about an attempt before": {
			in: but(failed(), func(in *Input) { in.Request = &v1alpha1.RollbackRequest{User: "ann", Attempt: 3} }), drop: "names attempt 3"},
		"not when the request cannot be parsed": {
			in: but(failed(), func(in *Input) { in.RequestMalformed = true }), drop: "cannot be parsed"},
		"not for a request once a newer template was applied": {
			in: but(underWay(), func(in *Input) {
				in.Current, in.Request = false, &v1alpha1.RollbackRequest{User: "ann", Attempt: 4}
			})},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(tc.in)
			if got.Kind != tc.want {
				t.Errorf("kind is %q, want %q", got.Kind, tc.want)
			}
			if got.Drop != (tc.drop != "") || !strings.Contains(got.Message, tc.drop) {
				t.Errorf("drop is %v: %s", got.Drop, got.Message)
			}
			if got.LimitReached != (tc.limit != "") || !strings.Contains(got.Message, tc.limit) {
				t.Errorf("limitReached is %v: %s", got.LimitReached, got.Message)
			}
			if got.NextCheck.IsZero() == tc.again {
				t.Errorf("next check at %s", got.NextCheck)
			}
		})
	}
}

func TestTheMessageNamesThePods(t *testing.T) {
	in := underWay()
	for _, name := range []string{"web-2", "web-3", "web-4"} {
		in.Pods = append(in.Pods, Pod{Name: name, Created: ago(3 * time.Minute), Fault: "CrashLoopBackOff"})
	}
	in.Pods = append(in.Pods, Pod{Name: "web-5", Created: now}, Pod{Name: "web-6", Ready: true, Created: ago(time.Hour), Changed: ago(time.Hour)},
		Pod{Name: "evicted", Created: ago(time.Hour), Fault: "Failed", Ended: true})
	want := Decision{Kind: v1alpha1.RollbackSelfHealing, Times: 1,
		Message: "4 of 6 pods did not run for 2m0s, and none recovered: web-1 (ImagePullBackOff), web-2 (CrashLoopBackOff), web-3 (CrashLoopBackOff), ..."}
	if diff := cmp.Diff(want, Decide(in)); diff != "" {
		t.Error(diff)
	}
}

func TestTheMessageSaysThatSomePodsRecovered(t *testing.T) {
	const want = "1 of 2 pods did not run for 2m0s, and too few recovered: web-2 (CrashLoopBackOff)"
	if got := Decide(crashed(1, time.Minute, 1)).Message; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
