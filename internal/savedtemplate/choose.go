package savedtemplate

// Newest returns the newest kept version that a workload can go back to: not
// the one that it is at, and none that is said to be bad. kept is sorted as by
// ReadAll.
func Newest(kept []Kept, current string, bad func(version string) bool) (Kept, bool) {
	for _, k := range kept {
		if k.Release.Version != current && !bad(k.Release.Version) {
			return k, true
		}
	}
	return Kept{}, false
}

// Find returns the kept template of a version.
func Find(kept []Kept, version string) (Kept, bool) {
	for _, k := range kept {
		if k.Release.Version == version {
			return k, true
		}
	}
	return Kept{}, false
}

// Surplus returns what is kept beyond the limit: the oldest. kept is sorted as
// by ReadAll.
func Surplus(kept []Kept, limit int) []Kept {
	if len(kept) <= limit {
		return nil
	}
	return kept[limit:]
}
