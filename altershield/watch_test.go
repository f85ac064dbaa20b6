package altershield

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/configmap"
)

func TestConfiguredFollowsTheConfigMap(t *testing.T) {
	with := func(key, value string) map[string]string {
		data := maps.Clone(complete())
		data[key] = value
		return data
	}
	cmw := &configmap.ManualWatcher{Namespace: "ns"}
	changes := 0
	configured := WatchConfigured(t.Context(), cmw, func() { changes++ })
	for _, step := range []struct {
		name    string
		data    map[string]string
		want    bool
		changes int
	}{
		{"empty", nil, false, 0},
		{"complete, without the token", complete(), true, 1},
		{"another rate", with(keyQPS, "5"), true, 1},
		{"with an invalid value", with(keyQPS, "x"), true, 1},
		{"corrected", complete(), true, 1},
		{"without a URL", with(keyBaseURL, ""), false, 2},
		{"with a mistyped key of the URL", map[string]string{"base_url": "http://server"}, true, 3},
	} {
		cmw.OnChange(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: ConfigMapName}, Data: step.data})
		if got := configured(); got != step.want || changes != step.changes {
			t.Errorf("%s: configured is %v after %d changes", step.name, got, changes)
		}
	}
}
