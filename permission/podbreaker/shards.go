package podbreaker

import (
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

const (
	// Label marks the ConfigMaps of the breaker, for watches.
	Label = "stke.io/permission-breaker"
	// overflowAnnotation on the primary ConfigMap sends new entries to the shards. It
	// is never removed, so that no pod has two entries.
	overflowAnnotation = "stke.io/permission-breaker-overflowed"
	// ShardCount is the number of further ConfigMaps when the primary one is full.
	ShardCount = 16
	// maxBytes limits the size of all entries of one ConfigMap, because each write sends the
	// whole object. Above it, the ConfigMap takes no new entry, and an existing entry is
	// written with a shorter message.
	maxBytes = 512 << 10
	// maxExcess is by how many bytes all entries together may exceed maxBytes. Only an existing
	// entry that does not fit without its message may exceed maxBytes. The API server accepts
	// 1 MiB.
	maxExcess = 1<<20 - maxBytes
)

// PrimaryName is the name of the ConfigMap that has all entries until it is full.
const PrimaryName = podmeta.BreakerName

// ShardName returns the name of the ConfigMap for the key if the primary ConfigMap
// was full when the entry was created.
func ShardName(key string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return fmt.Sprintf("%s-%d", podmeta.BreakerName, h.Sum32()%ShardCount)
}

// ConfigMapNames returns the names of the primary ConfigMap and all shards.
func ConfigMapNames() []string {
	names := []string{PrimaryName}
	for i := range ShardCount {
		names = append(names, fmt.Sprintf("%s-%d", podmeta.BreakerName, i))
	}
	return names
}

// inShard reports whether the entry of the key belongs to its shard and not to cm.
func inShard(cm *corev1.ConfigMap, key string) bool {
	_, found := cm.Data[key]
	return !found && cm.Name == PrimaryName && cm.Annotations[overflowAnnotation] != ""
}

func size(cm *corev1.ConfigMap) int {
	n := 0
	for key, value := range cm.Data {
		n += len(key) + len(value)
	}
	return n
}
