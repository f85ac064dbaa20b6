package budget

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Entry is a value of status.unavailablePods, written `<resourceVersion>/<uid>`:
// the next pod of a StatefulSet has the name of the last. That of a resize has
// `/<generation>` behind it.
type Entry struct {
	ResourceVersion string
	UID             types.UID
	// Resizes is the generation that the pod had before it was resized; 0 for
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

// ParseEntry reads one; a bare resourceVersion is nobody's.
func ParseEntry(s string) Entry {
	rv, rest, _ := strings.Cut(s, "/")
	uid, generation, _ := strings.Cut(rest, "/")
	resizes, err := strconv.ParseInt(generation, 10, 64)
	if err != nil {
		resizes = 0 // a change whose end is seen otherwise
	}
	return Entry{rv, types.UID(uid), resizes}
}
