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

// young is how old an entry has to be to be removed.
const minEntryAge = time.Minute

// Collect removes the entries of pods that there are not any more: entries go
// with the pod. living returns the UID of the pod of a key, false when there is
// none. It returns how many entries went.
//
// What failed only just now is kept: the entry may be newer than what the caller
// knows of pods.
func (b *Breaker) RemoveStale(ctx context.Context, now time.Time, living func(key string) (types.UID, bool)) (int, error) {
	old := now.Add(-minEntryAge)
	removed := 0
	for _, name := range ConfigMapNames() {
		cm, err := b.lister.ConfigMaps(b.namespace).Get(name)
		if apierrs.IsNotFound(err) {
			continue
		} else if err != nil {
			return removed, fmt.Errorf("read ConfigMap %s: %w", name, err)
		}
		if len(staleKeys(cm, old, living)) == 0 {
			continue
		}
		n, err := b.removeStaleFrom(ctx, name, old, living)
		if removed += n; err != nil {
			return removed, fmt.Errorf("clean ConfigMap %s: %w", name, err)
		}
	}
	return removed, nil
}

func (b *Breaker) removeStaleFrom(ctx context.Context, name string, old time.Time, living func(string) (types.UID, bool)) (int, error) {
	maps := b.maps
	removed := 0
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		cm, err := maps.client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		keys := staleKeys(cm, old, living)
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

func staleKeys(cm *corev1.ConfigMap, old time.Time, living func(string) (types.UID, bool)) []string {
	var keys []string
	for key, raw := range cm.Data {
		var e Entry
		if json.Unmarshal([]byte(raw), &e) != nil {
			keys = append(keys, key) // it says nothing
			continue
		}
		if uid, lives := living(key); (!lives || uid != e.UID) && e.LastRequestFailTime.Before(old) {
			keys = append(keys, key)
		}
	}
	return keys
}
