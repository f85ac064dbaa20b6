package clients

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// SetConfig creates a setting, and deletes it when the test ends.
func (c *Clients) SetConfig(t *testing.T, kind v1alpha1.ConfigType, content string) {
	t.Helper()
	configs := c.Breakwater.AppV1alpha1().OpsConfigInfoes(v1alpha1.SystemNamespace)
	config := &v1alpha1.OpsConfigInfo{ObjectMeta: metav1.ObjectMeta{Name: string(kind)}}
	config.Spec.Type, config.Spec.Content, config.Spec.Enable = kind, content, true
	if _, err := configs.Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := configs.Delete(context.Background(), config.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}
