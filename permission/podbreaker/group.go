package podbreaker

import (
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/internal/groupcommit"
)

// ErrFull says that there is no room for another entry in the pod's shard.
var ErrFull = errors.New("the breaker's record is full")

// reply is what a ConfigMap says to one request.
type reply struct {
	Decision
	// elsewhere: ask the key's shard.
	useShard bool
	// full: there is no room here.
	full bool
}

type decision = groupcommit.Decision[*corev1.ConfigMap, reply]

// decideAll answers a group of requests on one ConfigMap, in their order.
func (p Policy) decideGroup(cm *corev1.ConfigMap, group []Request) decision {
	next := cm.DeepCopy()
	changed := false
	left := maxBytes - size(cm)
	replies := make([]reply, len(group))
	for i, r := range group {
		if inShard(next, r.Key) {
			replies[i].useShard = true
			continue
		}
		before, existed := next.Data[r.Key]
		entry, exists := decode(before, r.UID)
		d, written, remove := p.Decide(entry, exists, r)
		replies[i].Decision = d
		switch {
		case written != nil:
			value := encode(*written)
			if !existed && left < len(r.Key)+len(value) {
				// A full first ConfigMap is the beginning of the shards.
				if replies[i] = (reply{full: true}); next.Name == PrimaryName {
					replies[i] = reply{useShard: true}
					next.Annotations = withKey(next.Annotations, overflowAnnotation, "true")
					changed = true
				}
				continue
			}
			left -= len(value) - len(before)
			next.Data = withKey(next.Data, r.Key, value)
			changed = changed || value != before
		case remove:
			delete(next.Data, r.Key)
			left += len(before)
			changed = true
		}
	}
	return decision{Changed: changed, Next: next, Answers: replies}
}

// with sets a key of a map that is ours already, but may be nil.
func withKey(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}
