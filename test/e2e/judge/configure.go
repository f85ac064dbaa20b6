package judge

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// originalAnnotation keeps, as JSON, what a configuration was before Configure
// changed it, so that also a later run can bring it back. It never holds a
// token: Configure does not replace one that is not its own.
const originalAnnotation = "test.breakwater.dev/original"

// baseURL is the key without whose value there is no server.
const baseURL = "base-url"

// configuration is what Breakwater is told about the double.
func configuration() map[string]string {
	return map[string]string{
		baseURL:            URL,
		"platform":         Platform,
		"tenant-code":      "demo",
		"change-scene-key": "breakwater",
		"cluster-name":     "embedded",
	}
}

// Configure has Breakwater ask the double. It refuses to replace a server that
// somebody else has configured.
func Configure(ctx context.Context, kube kubernetes.Interface) error {
	// The token comes first: a base-url without one is an error.
	if err := setToken(ctx, kube); err != nil {
		return err
	}
	return updateConfig(ctx, kube, func(cm *corev1.ConfigMap) error {
		if _, ours := cm.Annotations[originalAnnotation]; !ours {
			if cm.Data[baseURL] != "" {
				return fmt.Errorf("a server is configured (ConfigMap %s): this would replace it", cm.Name)
			}
			original, err := json.Marshal(cm.Data)
			if err != nil {
				return fmt.Errorf("keep the configuration: %w", err)
			}
			if cm.Annotations == nil {
				cm.Annotations = map[string]string{}
			}
			cm.Annotations[originalAnnotation] = string(original)
		}
		if cm.Data == nil {
			cm.Data = map[string]string{}
		}
		for key, value := range configuration() {
			cm.Data[key] = value
		}
		return nil
	})
}

// Unconfigure undoes Configure, also that of an earlier run. Where nothing was
// configured it does nothing.
func Unconfigure(ctx context.Context, kube kubernetes.Interface) error {
	err := updateConfig(ctx, kube, func(cm *corev1.ConfigMap) error {
		raw, ours := cm.Annotations[originalAnnotation]
		if !ours {
			return nil
		}
		original := map[string]string{}
		if err := json.Unmarshal([]byte(raw), &original); err != nil {
			return fmt.Errorf("read what the configuration was: %w", err)
		}
		delete(cm.Annotations, originalAnnotation)
		cm.Data = original
		return nil
	})
	if err != nil {
		return err
	}
	return unsetToken(ctx, kube)
}

func updateConfig(ctx context.Context, kube kubernetes.Interface, change func(*corev1.ConfigMap) error) error {
	maps := kube.CoreV1().ConfigMaps(v1alpha1.SystemNamespace)
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		cm, err := maps.Get(ctx, altershield.ConfigMapName, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read ConfigMap %s: %w", altershield.ConfigMapName, err)
		}
		if err := change(cm); err != nil {
			return err
		}
		_, err = maps.Update(ctx, cm, metav1.UpdateOptions{})
		return err
	})
}

func setToken(ctx context.Context, kube kubernetes.Interface) error {
	secrets := kube.CoreV1().Secrets(v1alpha1.SystemNamespace)
	made := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: altershield.SecretName, Annotations: map[string]string{originalAnnotation: "absent"},
		},
		Data: map[string][]byte{altershield.TokenKey: []byte(Token)},
	}
	_, err := secrets.Create(ctx, made, metav1.CreateOptions{})
	if !apierrs.IsAlreadyExists(err) {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		secret, err := secrets.Get(ctx, altershield.SecretName, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read Secret %s: %w", altershield.SecretName, err)
		}
		if _, ours := secret.Annotations[originalAnnotation]; !ours {
			if len(secret.Data[altershield.TokenKey]) > 0 {
				return fmt.Errorf("a token is configured (Secret %s): this would replace it", secret.Name)
			}
			if secret.Annotations == nil {
				secret.Annotations = map[string]string{}
			}
			secret.Annotations[originalAnnotation] = "empty"
		}
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[altershield.TokenKey] = []byte(Token)
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
		return err
	})
}

func unsetToken(ctx context.Context, kube kubernetes.Interface) error {
	secrets := kube.CoreV1().Secrets(v1alpha1.SystemNamespace)
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		secret, err := secrets.Get(ctx, altershield.SecretName, metav1.GetOptions{})
		if err != nil {
			return ignoreNotFound(err)
		}
		switch secret.Annotations[originalAnnotation] {
		case "absent":
			return secrets.Delete(ctx, secret.Name, metav1.DeleteOptions{})
		case "empty":
			delete(secret.Annotations, originalAnnotation)
			delete(secret.Data, altershield.TokenKey)
			_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
			return err
		default:
			return nil
		}
	})
}
