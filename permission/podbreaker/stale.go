package podbreaker

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/retry"
)

// minEntryAge is how long ago the last unsuccessful attempt of an entry was, and the time of its
// holder ended, before the entry is removed.
const minEntryAge = time.Minute

// RemoveStale removes the entries of deleted pods from the ConfigMaps of the breaker and returns how many.
// podUID returns the UID of the pod of a key, false if there is none.
//
// Entries with a recent unsuccessful attempt or holder are kept, because they may be newer than
// the caller's cache of pods.
func RemoveStale(ctx context.Context, client corev1client.ConfigMapInterface, now time.Time, podUID func(key string) (types.UID, bool)) (int, error) {
	// From the cache of the API server: removeStaleFrom reads a ConfigMap again before it changes it.
	all, err := client.List(ctx, metav1.ListOptions{LabelSelector: Label + "=true", ResourceVersion: "0"})
	if err != nil {
		return 0, fmt.Errorf("list the ConfigMaps of the breaker: %w", err)
	}
	before := now.Add(-minEntryAge)
	removed := 0
	for _, cm := range all.Items {
		if !slices.Contains(ConfigMapNames(), cm.Name) || len(staleKeys(&cm, before, podUID)) == 0 {
			continue
		}
		n, err := removeStaleFrom(ctx, client, cm.Name, before, podUID)
		if removed += n; err != nil {
			return removed, fmt.Errorf("remove stale entries from ConfigMap %s: %w", cm.Name, err)
		}
	}
	return removed, nil
}

func removeStaleFrom(ctx context.Context, client corev1client.ConfigMapInterface, name string, before time.Time, podUID func(string) (types.UID, bool)) (int, error) {
	removed := 0
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		cm, err := client.Get(ctx, name, metav1.GetOptions{})
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
		if _, err := client.Update(ctx, cm, metav1.UpdateOptions{}); err != nil {
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
