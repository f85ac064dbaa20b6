// Package knativetraffic decides about the traffic of a Knative Service. When its release failed its
// check, the share of the failed Revisions in spec.traffic moves to the last good one. When
// the hold ends, it moves back, except the share of entries that name a Revision whose fail was not
// overruled. If releases are judged before they get traffic, spec.traffic names the Revision that gets
// the requests now, instead of the latest Revision. Budgets protect the pods of the Revisions that get
// requests. The functions are pure.
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

// Revisions are the Revisions whose share Move moves away.
type Revisions struct {
	// Names are the names of the Revisions.
	Names []string
	// Latest: the latest Revision is one of them.
	Latest bool
}

// Has reports whether an entry is for one of the Revisions.
func (r Revisions) Has(entry map[string]any) bool {
	if latest(entry) {
		return r.Latest
	}
	return slices.Contains(r.Names, text(entry, "revisionName"))
}

// Share returns the percentage of the requests that the Revisions get.
func (r Revisions) Share(s Split) int64 {
	var sum int64
	for _, entry := range s {
		if r.Has(entry) {
			sum += percent(entry)
		}
	}
	return sum
}

// Move moves the share of some Revisions to the Revision with the name, and returns the new split.
// Entries with a tag keep it, for debugging, and other entries stay. Move returns false, and the
// same split, if these Revisions have no share or the name is empty.
func Move(s Split, from Revisions, to string) (Split, bool) {
	share := from.Share(s)
	if share == 0 || to == "" {
		return s, false
	}
	var out Split
	for _, entry := range s {
		switch {
		case !from.Has(entry) || percent(entry) == 0:
			out = append(out, entry)
		case text(entry, "tag") != "":
			out = append(out, withPercent(entry, 0))
		}
	}
	at := slices.IndexFunc(out, func(e map[string]any) bool { return !latest(e) && text(e, "revisionName") == to })
	if at < 0 {
		return append(out, map[string]any{"revisionName": to, "latestRevision": false, "percent": share}), true
	}
	out[at] = withPercent(out[at], percent(out[at])+share)
	return out, true
}

// Restore returns the split of a Service before Pin, Move, or both. It returns false, and the current
// split, if a person has changed it since: that split stays.
func Restore(current, former Split, from Revisions, to, service string) (Split, bool) {
	moved, ok := Move(former, from, to)
	if ok && Same(current, moved) {
		return former, true
	}
	pinned, ok := Pin(former, to, service)
	if moved, _ = Move(pinned, from, to); ok && Same(current, moved) {
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
