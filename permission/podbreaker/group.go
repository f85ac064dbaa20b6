package podbreaker

import (
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/internal/groupcommit"
	"github.com/breakwater-dev/breakwater/internal/text"
)

// ErrFull means that the pod's ConfigMap has no space for its entry.
var ErrFull = errors.New("the breaker's ConfigMap is full")

// reply is the result of one request on one ConfigMap.
type reply struct {
	Decision
	// useShard: send the request to the shard of the key.
	useShard bool
	// full: the ConfigMap has no space for the entry.
	full bool
}

type groupDecision = groupcommit.Decision[*corev1.ConfigMap, reply]

// decideGroup applies a group of requests to one ConfigMap, in their order.
func (p Policy) decideGroup(cm *corev1.ConfigMap, group []Request) groupDecision {
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
			if excess := len(value) - len(before) - left; existed && excess > 0 {
				// The entry stays in its ConfigMap, which is full, so its message is cut.
				written.Message = text.Truncate(written.Message, len(written.Message)-excess)
				value = encode(*written)
			}
			growth := len(value) - len(before)
			if existed && growth > 0 && growth > left+maxExcess {
				replies[i] = reply{full: true}
				continue
			}
			if !existed && left < len(r.Key)+len(value) {
				// When the primary ConfigMap is full, new entries go to shards.
				if replies[i] = (reply{full: true}); next.Name == PrimaryName {
					replies[i] = reply{useShard: true}
					next.Annotations = withKey(next.Annotations, overflowAnnotation, "true")
					changed = true
				}
				continue
			}
			left -= growth
			next.Data = withKey(next.Data, r.Key, value)
			changed = changed || value != before
		case remove:
			delete(next.Data, r.Key)
			left += len(before)
			changed = true
		}
	}
	return groupDecision{Changed: changed, Next: next, Answers: replies}
}

// withKey sets a key of a map that may be nil. It modifies the map.
func withKey(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}
