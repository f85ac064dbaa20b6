package knativetraffic

import (
	"maps"
	"slices"
)

// Tag is the tag of the latest Revision while its share is pinned to another one. Its host name is that
// of the Service with the prefix "unjudged-".
const Tag = "unjudged"

// maxLabel is the maximum length of a DNS label. A Route with a longer host name does not become Ready.
const maxLabel = 63

// Pin moves the share of the latest Revision to the Revision with the name, and returns the new split. The
// latest Revision keeps its tag, or gets Tag, so that it has an address and Serving scales it as annotated. It
// gets no tag if another entry has Tag, or its host name would be too long. Pin returns false, and the
// same split, if the latest Revision has no share or the name is empty.
func Pin(s Split, to, service string) (Split, bool) {
	s = Defaulted(s)
	hasTag := slices.ContainsFunc(s, func(e map[string]any) bool {
		return text(e, "tag") == Tag || latest(e) && text(e, "tag") != ""
	})
	shared := slices.IndexFunc(s, func(e map[string]any) bool { return latest(e) && percent(e) > 0 })
	if shared < 0 || to == "" {
		return s, false
	}
	if !hasTag && len(Tag+"-"+service) <= maxLabel {
		s = slices.Clone(s)
		s[shared] = maps.Clone(s[shared])
		s[shared]["tag"] = Tag
	}
	return Move(s, Revisions{Latest: true}, to)
}

// Defaulted returns the split with the default of Serving: all requests go to the latest Revision.
func Defaulted(s Split) Split {
	if len(s) == 0 {
		return Split{{"latestRevision": true, "percent": int64(100)}}
	}
	return s
}
