package savedtemplate

// Newest returns the newest kept version that a workload can go back to: not
// the one that it is at, and none that is said to be bad. kept is sorted as by
// ReadAll.
func Newest(kept []Saved, current string, bad func(version string) bool) (Saved, bool) {
	for _, k := range kept {
		if k.Release.Version != current && !bad(k.Release.Version) {
			return k, true
		}
	}
	return Saved{}, false
}

// Find returns the kept template of a version.
func Find(kept []Saved, version string) (Saved, bool) {
	for _, k := range kept {
		if k.Release.Version == version {
			return k, true
		}
	}
	return Saved{}, false
}

// OverLimit returns what is kept beyond the limit: the oldest. kept is sorted as
// by ReadAll.
func OverLimit(kept []Saved, limit int) []Saved {
	if len(kept) <= limit {
		return nil
	}
	return kept[limit:]
}
