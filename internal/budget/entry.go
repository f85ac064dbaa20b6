package budget

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Entry is a value of status.unavailablePods, written
// `<resourceVersion>/<uid>/<token>/<effects>`. It has the UID because a StatefulSet
// reuses the names of its pods.
type Entry struct {
	ResourceVersion string
	UID             types.UID
	// Token is that of DeletedEntry.
	Token string
	// Effects are what the kubelet does because of the change. Without effects the change
	// itself makes the pod unavailable.
	Effects []Effect
}

func (e Entry) String() string {
	text := e.ResourceVersion + "/" + string(e.UID)
	if e.Token != "" || len(e.Effects) > 0 {
		text += "/" + e.Token
	}
	if len(e.Effects) > 0 {
		text += "/" + formatEffects(e.Effects)
	}
	return text
}

// Grace is for how long OpenKruise may wait until all containers that it restarts have stopped, one after the
// other.
func (e Entry) Grace() time.Duration {
	var sum time.Duration
	for _, f := range e.Effects {
		sum = min(sum+f.Grace, maxGrace)
	}
	return sum
}

// ParseEntry parses an entry. A bare resourceVersion has no UID.
func ParseEntry(s string) Entry {
	rv, rest, _ := strings.Cut(s, "/")
	uid, rest, _ := strings.Cut(rest, "/")
	token, effects, _ := strings.Cut(rest, "/")
	return Entry{rv, types.UID(uid), token, parseEffects(effects)}
}

// DeletedEntry is a value of status.deletedPods, written `<resourceVersion>/<token>`.
type DeletedEntry struct {
	// ResourceVersion is that of the pod.
	ResourceVersion string
	// Token is the resourceVersion of the budget before the charge was written, or renewed
	// because another request uses it. So no two charges have the same token.
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
