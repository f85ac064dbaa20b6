package podbreaker

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// minEntryAge is how long ago the last unsuccessful attempt of an entry was, and the time of its
// holder ended, before the entry is removed.
const minEntryAge = time.Minute

// RemoveStale removes the entries of deleted pods and returns how many. podUID
// returns the UID of the pod of a key, false if there is none.
//
// Entries with a recent unsuccessful attempt or holder are kept, because they may be newer than
// the caller's cache of pods.
func (b *Breaker) RemoveStale(ctx context.Context, now time.Time, podUID func(key string) (types.UID, bool)) (int, error) {
	before := now.Add(-minEntryAge)
	removed := 0
	for _, name := range ConfigMapNames() {
		cm, err := b.lister.ConfigMaps(b.namespace).Get(name)
		if apierrs.IsNotFound(err) {
			continue
		} else if err != nil {
			return removed, fmt.Errorf("read ConfigMap %s: %w", name, err)
		}
		if len(staleKeys(cm, before, podUID)) == 0 {
			continue
		}
		n, err := b.removeStaleFrom(ctx, name, before, podUID)
		if removed += n; err != nil {
			return removed, fmt.Errorf("remove stale entries from ConfigMap %s: %w", name, err)
		}
	}
	return removed, nil
}

func (b *Breaker) removeStaleFrom(ctx context.Context, name string, before time.Time, podUID func(string) (types.UID, bool)) (int, error) {
	maps := b.maps
	removed := 0
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		cm, err := maps.client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		keys := staleKeys(cm, before, podUID)
		if len(keys) == 0 {
			return nil
		}
		for _, key := range keys {
			delete(cm.Data, key)
		}
		if _, err := maps.client.Update(ctx, cm, metav1.UpdateOptions{}); err != nil {
			return err
		}
		removed = len(keys)
		return nil
	})
	return removed, err
}

func staleKeys(cm *corev1.ConfigMap, before time.Time, podUID func(string) (types.UID, bool)) []string {
	var keys []string
	for key, raw := range cm.Data {
		var e Entry
		if json.Unmarshal([]byte(raw), &e) != nil {
			keys = append(keys, key) // invalid
			continue
		}
		if uid, exists := podUID(key); (!exists || uid != e.UID) && e.LastRequestFailTime.Before(before) && e.Until.Before(before) {
			keys = append(keys, key)
		}
	}
	return keys
}
