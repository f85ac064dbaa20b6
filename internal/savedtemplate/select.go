package savedtemplate

// Newest returns the newest saved template that is a target of a rollback: not
// the current version, and not bad. kept is sorted as by ReadAll.
func Newest(kept []Saved, current string, bad func(version string) bool) (Saved, bool) {
	for _, k := range kept {
		if k.Release.Version != current && !bad(k.Release.Version) {
			return k, true
		}
	}
	return Saved{}, false
}

// Find returns the saved template of a version.
func Find(kept []Saved, version string) (Saved, bool) {
	for _, k := range kept {
		if k.Release.Version == version {
			return k, true
		}
	}
	return Saved{}, false
}

// OverLimit returns the oldest saved templates, which exceed the limit. kept is
// sorted as by ReadAll.
func OverLimit(kept []Saved, limit int) []Saved {
	if len(kept) <= limit {
		return nil
	}
	return kept[limit:]
}
