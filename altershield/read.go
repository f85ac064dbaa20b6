package altershield

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// ReadConfig reads the current arguments of ParseConfig from the API server. A
// missing object is nil: no server or no token is configured.
func ReadConfig(ctx context.Context, core typedcorev1.CoreV1Interface) (*corev1.ConfigMap, *corev1.Secret, error) {
	config, err := ignoreNotFound(core.ConfigMaps(v1alpha1.SystemNamespace).Get(ctx, ConfigMapName, metav1.GetOptions{}))
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", ConfigMapName, err)
	}
	secret, err := ignoreNotFound(core.Secrets(v1alpha1.SystemNamespace).Get(ctx, SecretName, metav1.GetOptions{}))
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", SecretName, err)
	}
	return config, secret, nil
}

// ignoreNotFound returns nil for a missing object.
func ignoreNotFound[T *corev1.ConfigMap | *corev1.Secret](object T, err error) (T, error) {
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, err
}
