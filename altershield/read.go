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

// ReadConfig reads what ParseConfig parses, as it is now. An object that is
// not there is nil: no server or no token is configured.
func ReadConfig(ctx context.Context, core typedcorev1.CoreV1Interface) (*corev1.ConfigMap, *corev1.Secret, error) {
	config, err := present(core.ConfigMaps(v1alpha1.SystemNamespace).Get(ctx, ConfigMapName, metav1.GetOptions{}))
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", ConfigMapName, err)
	}
	secret, err := present(core.Secrets(v1alpha1.SystemNamespace).Get(ctx, SecretName, metav1.GetOptions{}))
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", SecretName, err)
	}
	return config, secret, nil
}

// present turns an object that is not there into nil.
func present[T *corev1.ConfigMap | *corev1.Secret](object T, err error) (T, error) {
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, err
}
