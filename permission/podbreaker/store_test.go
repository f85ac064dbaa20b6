package podbreaker

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

// uninstall.sh --part knows the part of an object by its label.
func TestACreatedConfigMapHasTheLabelOfItsPart(t *testing.T) {
	s := store{client: fake.NewClientset().CoreV1().ConfigMaps("sys")}
	cm, err := s.Live(t.Context(), types.NamespacedName{Namespace: "sys", Name: ShardName("shop.web")})
	if err != nil || cm.Labels["app.kubernetes.io/component"] != "permission" || cm.Labels[Label] != "true" {
		t.Errorf("labels %v, %v", cm.Labels, err)
	}
}
