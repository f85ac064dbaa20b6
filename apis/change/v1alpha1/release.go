package v1alpha1

import (
	"encoding/hex"
	"math"
	"strconv"
	"time"

	"knative.dev/pkg/apis"
)

// Release names one version and attempt of a workload.
// +k8s:deepcopy-gen=false
type Release struct {
	// Version is the value of VersionKey.
	Version string
	// Attempt is the value of AttemptAnnotation.
	Attempt int64
}

// MaxAttempt is the highest attempt. No workload has as many releases, so a higher one was written by a user.
const MaxAttempt = math.MaxInt32

// NextAttempt returns the attempt of the next release. It begins again at 1 instead of returning
// an attempt that ReleaseOf does not accept: such a release would never be judged.
func (r Release) NextAttempt() int64 {
	if r.Attempt >= MaxAttempt {
		return 1
	}
	return r.Attempt + 1
}

// ReleaseOf reads the release from the annotations of a workload or of a revision to
// which its controller copied them. It returns false if they are missing or invalid.
func ReleaseOf(annotations map[string]string) (Release, bool) {
	version := annotations[VersionKey]
	attempt, err := strconv.ParseUint(annotations[AttemptAnnotation], 10, 63)
	if version == "" || err != nil || attempt > MaxAttempt {
		return Release{}, false
	}
	return Release{Version: version, Attempt: int64(attempt)}, true
}

// Release returns the version and attempt of the ChangeWorkload.
func (c *ChangeWorkload) Release() Release {
	return Release{Version: c.Spec.Reversion, Attempt: c.Spec.Attempt}
}

// CountsAsFailed reports whether the version is bad: its release is suspended, or a check
// failed after the release had ended.
func (c *ChangeWorkload) CountsAsFailed() bool {
	if c.Status.Phase == ReleaseSuspend {
		return true
	}
	succeeded := c.Status.GetCondition(apis.ConditionSucceeded)
	return succeeded.IsFalse() && IsFailedCheckReason(succeeded.Reason)
}

// SucceededWithPods reports whether the release succeeded, and not without any pod. A release at 0 replicas also
// succeeds, but proves nothing about its version; its condition Judged then has ReasonNoVerdict. The condition
// keeps the difference after a later scale-down to 0.
func (c *ChangeWorkload) SucceededWithPods() bool {
	return c.Status.Phase == ReleaseSuccess && c.Status.GetCondition(ReleaseJudged).GetReason() != ReasonNoVerdict
}

// SucceededBefore reports whether the release succeeded before a time.
func (c *ChangeWorkload) SucceededBefore(t time.Time) bool {
	succeeded := c.Status.GetCondition(apis.ConditionSucceeded)
	return c.Status.Phase == ReleaseSuccess && succeeded != nil && t.After(succeeded.LastTransitionTime.Inner.Time)
}

// IsFailedCheckReason reports whether a reason of the condition Succeeded says that a pod
// or the order as a whole failed its check, or that an unjudged pod counts as failed.
func IsFailedCheckReason(reason string) bool {
	return reason == ReasonCheckFailed || reason == ReasonOrderCheckFailed
}

// IsBaseline reports whether the release is a baseline: it ran when its namespace was
// opted in, and no judge gives a verdict on it. True for the zero value.
func (r Release) IsBaseline() bool { return r.Attempt == 0 }

// IsTemplateVersion reports whether s has the format of workload.Version. Other values,
// set by users, must not become part of object names.
func IsTemplateVersion(s string) bool {
	hash, err := hex.DecodeString(s)
	return err == nil && len(hash) == templateVersionBytes
}

// templateVersionBytes is the number of hash bytes in workload.Version.
const templateVersionBytes = 16
