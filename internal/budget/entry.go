package budget

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Entry is a value of status.unavailablePods, written `<resourceVersion>/<uid>`,
// because a StatefulSet reuses the names of its pods. The entry of a resize ends
// with `/<generation>`.
type Entry struct {
	ResourceVersion string
	UID             types.UID
	// ResizeGeneration is the generation of the pod before it was resized; 0 for
	// another change.
	ResizeGeneration int64
}

func (e Entry) String() string {
	text := e.ResourceVersion + "/" + string(e.UID)
	if e.ResizeGeneration != 0 {
		text += "/" + strconv.FormatInt(e.ResizeGeneration, 10)
	}
	return text
}

// ParseEntry parses an entry. A bare resourceVersion has no UID.
func ParseEntry(s string) Entry {
	rv, rest, _ := strings.Cut(s, "/")
	uid, generation, _ := strings.Cut(rest, "/")
	resizes, err := strconv.ParseInt(generation, 10, 64)
	if err != nil {
		resizes = 0 // not a resize
	}
	return Entry{rv, types.UID(uid), resizes}
}

// DeletedEntry is a value of status.deletedPods, written `<resourceVersion>/<token>`.
type DeletedEntry struct {
	// ResourceVersion is that of the pod.
	ResourceVersion string
	// Token is the resourceVersion of the budget before the charge was written, or
	// renewed because another request uses it. So no two charges have the same.
	Token string
}

func (e DeletedEntry) String() string {
	if e.Token == "" {
		return e.ResourceVersion
	}
	return e.ResourceVersion + "/" + e.Token
}

// ParseDeletedEntry parses an entry. A bare resourceVersion has no token.
func ParseDeletedEntry(s string) DeletedEntry {
	rv, token, _ := strings.Cut(s, "/")
	return DeletedEntry{rv, token}
}
