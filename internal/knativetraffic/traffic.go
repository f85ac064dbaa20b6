// Package knativetraffic decides about the traffic of a Knative Service. When its release failed its
// check, the share of the failed Revisions in spec.traffic moves to the last good one, and back when
// the hold ends. If releases are judged before they get traffic, the share of the latest Revision is
// pinned to the one that has it. Budgets protect the pods of the Revisions that get requests. The functions are pure.
//
// An entry names a Revision, or means the latest that is Ready. Entries with a tag have an address
// of their own, also without a share.
package knativetraffic

import (
	"encoding/json"
	"maps"
	"slices"
)

// Split is spec.traffic, with fields that Breakwater does not know.
type Split []map[string]any

// Failed are the Revisions that failed.
type Failed struct {
	// Names are the names of the Revisions.
	Names []string
	// Latest: the latest Revision is one of them.
	Latest bool
}

// Has reports whether an entry is for a failed Revision.
func (f Failed) Has(entry map[string]any) bool {
	if latest(entry) {
		return f.Latest
	}
	return slices.Contains(f.Names, text(entry, "revisionName"))
}

// Share returns the percentage of the requests that the failed Revisions get.
func (f Failed) Share(s Split) int64 {
	var sum int64
	for _, entry := range s {
		if f.Has(entry) {
			sum += percent(entry)
		}
	}
	return sum
}

// Move returns the split with the share of the failed Revisions at a good one. Entries with a tag
// keep it, for debugging, and other entries stay. It returns false, and the same split, if the
// failed Revisions have no share or there is no good one.
func Move(s Split, failed Failed, good string) (Split, bool) {
	share := failed.Share(s)
	if share == 0 || good == "" {
		return s, false
	}
	var out Split
	for _, entry := range s {
		switch {
		case !failed.Has(entry) || percent(entry) == 0:
			out = append(out, entry)
		case text(entry, "tag") != "":
			out = append(out, withPercent(entry, 0))
		}
	}
	to := slices.IndexFunc(out, func(e map[string]any) bool { return !latest(e) && text(e, "revisionName") == good })
	if to < 0 {
		return append(out, map[string]any{"revisionName": good, "latestRevision": false, "percent": share}), true
	}
	out[to] = withPercent(out[to], percent(out[to])+share)
	return out, true
}

// Restore returns the split of a Service before Pin, Move, or both. It returns false, and the current
// split, if a person has changed it since: that split stays.
func Restore(current, former Split, failed Failed, good, service string) (Split, bool) {
	moved, ok := Move(former, failed, good)
	if ok && Same(current, moved) {
		return former, true
	}
	pinned, ok := Pin(former, good, service)
	if moved, _ = Move(pinned, failed, good); ok && Same(current, moved) {
		return former, true
	}
	return current, false
}

// Same reports whether two splits have the same meaning: Serving sets defaults.
func Same(a, b Split) bool {
	return slices.EqualFunc(a, b, func(a, b map[string]any) bool {
		return latest(a) == latest(b) && percent(a) == percent(b) &&
			text(a, "revisionName") == text(b, "revisionName") && text(a, "tag") == text(b, "tag")
	})
}

func latest(entry map[string]any) bool { return text(entry, "revisionName") == "" }

func text(entry map[string]any, key string) string {
	value, _ := entry[key].(string)
	return value
}

// percent returns the share of an entry, as each decoder of JSON has it.
func percent(entry map[string]any) int64 {
	switch n := entry["percent"].(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	case json.Number:
		value, _ := n.Int64() // the API server has validated it
		return value
	default:
		return 0
	}
}

func withPercent(entry map[string]any, n int64) map[string]any {
	out := maps.Clone(entry)
	out["percent"] = n
	return out
}
