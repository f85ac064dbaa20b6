//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// setConfigMap sets keys of a ConfigMap until the test ends.
func (e *environment) setConfigMap(t *testing.T, namespace, name string, keys map[string]string) {
	t.Helper()
	configs := e.kube.CoreV1().ConfigMaps(namespace)
	before, err := configs.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	set := func(ctx context.Context, values any) error {
		patch, err := json.Marshal(map[string]any{"data": values})
		if err != nil {
			return err
		}
		_, err = configs.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
	former := map[string]any{}
	for key := range keys {
		former[key] = nil // removes it
		if was, ok := before.Data[key]; ok {
			former[key] = was
		}
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), shortTimeout)
		defer cancel()
		if err := set(ctx, former); err != nil {
			t.Errorf("restore %s: %v", name, err)
		}
	})
	if err := set(t.Context(), keys); err != nil {
		t.Fatal(err)
	}
}
