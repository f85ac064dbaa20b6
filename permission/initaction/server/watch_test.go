package server

import (
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/permission/settings"
)

// A request before that would be for the default cluster, which may be the name of another one.
func TestAStartedWatchHasReadTheSettings(t *testing.T) {
	// A line about the unknown key delays the handler of the ConfigMap.
	delay := zap.WrapCore(func(zapcore.Core) zapcore.Core {
		return zapcore.RegisterHooks(zap.NewExample().Core(), func(zapcore.Entry) error { time.Sleep(500 * time.Millisecond); return nil })
	})
	ctx := logging.WithLogger(t.Context(), zap.NewNop().WithOptions(delay).Sugar())
	kube := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "sys", Name: podmeta.ConfigName, UID: "uid"},
		Data: map[string]string{settings.KeyCluster: "shop", "unknown": ""}})
	w, err := NewWatch(ctx, kube, "sys", func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if got := w.Settings.Get().Cluster; got != "shop" {
		t.Errorf("cluster %s, want shop", got)
	}
}
