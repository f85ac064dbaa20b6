package altershield

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/configmap"
)

func TestAServerIsConfiguredAsSoonAsTheConfigMapSaysSo(t *testing.T) {
	with := func(key, value string) map[string]string {
		data := maps.Clone(complete())
		data[key] = value
		return data
	}
	cmw := &configmap.ManualWatcher{Namespace: "ns"}
	turns := 0
	configured := WatchConfigured(t.Context(), cmw, func() { turns++ })
	for _, step := range []struct {
		says  string
		data  map[string]string
		want  bool
		turns int
	}{
		{"nothing is not", nil, false, 0},
		{"a complete one is, without the token", complete(), true, 1},
		{"another rate turns nothing", with(keyQPS, "5"), true, 1},
		{"one with a mistake stays so", with(keyQPS, "x"), true, 1},
		{"and when it is mended", complete(), true, 1},
		{"one without a URL is not", with(keyBaseURL, ""), false, 2},
	} {
		cmw.OnChange(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: ConfigMapName}, Data: step.data})
		if got := configured(); got != step.want || turns != step.turns {
			t.Errorf("%s: configured %v after %d turns", step.says, got, turns)
		}
	}
}
