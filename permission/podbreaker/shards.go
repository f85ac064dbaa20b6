package podbreaker

import (
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

const (
	// Label marks the ConfigMaps of the breaker, for the watch.
	Label = "stke.io/permission-breaker"
	// overflowed is an annotation of the first ConfigMap: new entries go to the
	// shards. It is never taken away, so no pod can have two entries.
	overflowAnnotation = "stke.io/permission-breaker-overflowed"
	// Shards is how many further ConfigMaps there are when the first is full.
	ShardCount = 16
	// maxBytes is how much the entries of one ConfigMap may have. The API server
	// takes 1 MiB, and each write sends all of it.
	maxBytes = 512 << 10
)

// First is the ConfigMap that everything stands in while there is little.
const PrimaryName = podmeta.BreakerName

// Shard is the name of the ConfigMap that the key's entry is in once the first
// one has been full.
func ShardName(key string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return fmt.Sprintf("%s-%d", podmeta.BreakerName, h.Sum32()%ShardCount)
}

// Names are all names that the ConfigMaps can have.
func ConfigMapNames() []string {
	names := []string{PrimaryName}
	for i := range ShardCount {
		names = append(names, fmt.Sprintf("%s-%d", podmeta.BreakerName, i))
	}
	return names
}

// elsewhere says that the key's entry is not here, and must not be put here: it
// is in its shard, if it is anywhere.
func inShard(cm *corev1.ConfigMap, key string) bool {
	_, here := cm.Data[key]
	return !here && cm.Name == PrimaryName && cm.Annotations[overflowAnnotation] != ""
}

func size(cm *corev1.ConfigMap) int {
	n := 0
	for key, value := range cm.Data {
		n += len(key) + len(value)
	}
	return n
}
