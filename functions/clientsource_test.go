package functions_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/functions"
)

func TestAChangedConfigurationTakesEffectAfterTheCacheTTL(t *testing.T) {
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: altershield.ConfigMapName}}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: altershield.SecretName},
		Data:       map[string][]byte{altershield.TokenKey: []byte("t")},
	}
	kube := fake.NewClientset(configMap, secret)
	clock := clocktesting.NewFakePassiveClock(time.Unix(1700000000, 0))
	server := functions.NewReplicaClientSource(kube, 1)
	server.Clock = clock
	configured := func() bool {
		t.Helper()
		config, err := server.Config(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return config.Configured()
	}
	if configured() {
		t.Error("a server is configured without a base-url")
	}
	configMap.Data = map[string]string{"base-url": "http://server", "platform": "p", "tenant-code": "t", "change-scene-key": "s", "cluster-name": "c"}
	if _, err := kube.CoreV1().ConfigMaps(v1alpha1.SystemNamespace).Update(t.Context(), configMap, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	reads := len(kube.Actions())
	clock.SetTime(clock.Now().Add(functions.ConfigCacheTTL - 1))
	if configured() || len(kube.Actions()) != reads {
		t.Error("the configuration is read at each call")
	}
	clock.SetTime(clock.Now().Add(1))
	if !configured() {
		t.Error("the change has no effect")
	}
}

// Any pod can send requests for which the configuration is read.
func TestAnInvalidConfigurationIsReadOncePerCacheTTL(t *testing.T) {
	kube := fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: altershield.ConfigMapName},
		Data:       map[string]string{"max-skew": "soon"},
	})
	server := functions.NewReplicaClientSource(kube, 1)
	server.Clock = clocktesting.NewFakePassiveClock(time.Unix(1700000000, 0))
	reads := 0
	for range 100 {
		var invalid *functions.ConfigError
		if _, err := server.CallbackConfig(t.Context()); !errors.As(err, &invalid) {
			t.Fatalf("got %v", err)
		}
		if reads == 0 {
			reads = len(kube.Actions())
		}
	}
	if got := len(kube.Actions()); got != reads {
		t.Errorf("%d reads of 100 requests, want %d", got, reads)
	}
}
