package savedtemplate

// Newest returns the newest saved template that is a target of a rollback: not
// the current version, and not bad. saved is sorted as by ReadAll.
func Newest(saved []Saved, current string, bad func(version string) bool) (Saved, bool) {
	for _, k := range saved {
		if k.Release.Version != current && !bad(k.Release.Version) {
			return k, true
		}
	}
	return Saved{}, false
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
// sorted as by ReadAll.
func OverLimit(saved []Saved, limit int) []Saved {
	if len(saved) <= limit {
		return nil
	}
	return saved[limit:]
}
