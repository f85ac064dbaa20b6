package savedtemplate

import "github.com/breakwater-dev/breakwater/apis/change/v1alpha1"

// Newest returns the newest saved template that is a target of a rollback: not
// the current version, and not bad. saved is sorted as by List.
func Newest(saved []Saved, current string, bad func(version string) bool) (Saved, bool) {
	for _, k := range saved {
		if k.Release.Version != current && !bad(k.Release.Version) {
			return k, true
		}
	}
	return Saved{}, false
}

// FailedVersions returns the versions whose release counts as failed. The releases are those of one workload.
func FailedVersions(releases []v1alpha1.ChangeWorkload) map[string]bool {
	failed := map[string]bool{}
	for i := range releases {
		if releases[i].CountsAsFailed() {
			failed[releases[i].Spec.Reversion] = true
		}
	}
	return failed
}

// Find returns the saved template of a version.
func Find(saved []Saved, version string) (Saved, bool) {
	for _, k := range saved {
		if k.Release.Version == version {
			return k, true
		}
	}
	return Saved{}, false
}

// OverLimit returns the oldest saved templates, which exceed the limit. saved is
// sorted as by List.
func OverLimit(saved []Saved, limit int) []Saved {
	if len(saved) <= limit {
		return nil
	}
	return saved[limit:]
}
