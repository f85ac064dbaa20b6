package v1alpha1

import (
	"encoding/hex"
	"strconv"
)

// Release names one version and attempt of a workload.
// +k8s:deepcopy-gen=false
type Release struct {
	// Version is the value of VersionKey.
	Version string
	// Attempt is the value of AttemptAnnotation.
	Attempt int64
}

// ReleaseOf reads the release from the annotations of a workload, or of the
// ReplicaSet that its controller copied them to. False: they are missing or
// do not read, so nothing is known.
func ReleaseOf(annotations map[string]string) (Release, bool) {
	version := annotations[VersionKey]
	// 63 bits, so that the attempt fits the int64 of ChangeWorkload.spec.
	attempt, err := strconv.ParseUint(annotations[AttemptAnnotation], 10, 63)
	if version == "" || err != nil {
		return Release{}, false
	}
	return Release{Version: version, Attempt: int64(attempt)}, true
}

// Release is the version and attempt that the ChangeWorkload is of.
func (c *ChangeWorkload) Release() Release {
	return Release{Version: c.Spec.Reversion, Attempt: c.Spec.Attempt}
}

// Judged says whether the release is checked. A baseline, attempt 0, is what
// ran already when its namespace was opted in.
func (r Release) Judged() bool { return r.Attempt > 0 }

// IsTemplateVersion says whether s can have come from workload.Version. What a
// person wrote may not become part of names.
func IsTemplateVersion(s string) bool {
	hash, err := hex.DecodeString(s)
	return err == nil && len(hash) == templateVersionBytes
}

// templateVersionBytes is how many bytes of a hash workload.Version writes.
const templateVersionBytes = 16
