package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

// readConnectInput reads what connect needs of the cluster.
func (a *app) readConnectInput(ctx context.Context, c *clients, f connectFlags) (in connectInput, err error) {
	if in.given, err = a.readToken(f.tokenFile); err != nil {
		return in, err
	}
	if in.config, in.secret, err = altershield.ReadConfig(ctx, c.kube.CoreV1()); err != nil {
		return in, err
	}
	if in.config == nil || in.secret == nil {
		return in, fmt.Errorf("ConfigMap %s or Secret %s of namespace %s is missing: install part change first", altershield.ConfigMapName, altershield.SecretName, v1alpha1.SystemNamespace)
	}
	if in.settings, err = c.settings(ctx); err != nil {
		return in, err
	}
	if f.cluster == "" && strings.TrimSpace(in.config.Data["cluster-name"]) == "" {
		system, err := c.kube.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err != nil {
			return in, fmt.Errorf("--cluster is missing, and namespace kube-system, whose UID is the default, cannot be read: %w", err)
		}
		in.cluster = string(system.UID)
	}
	if f.callback == "" {
		in.callback, err = c.callbackAddress(ctx)
	}
	return in, err
}

// settings returns the settings of the cluster.
func (c *clients) settings(ctx context.Context) (settings.Settings, error) {
	list, err := c.breakwater.AppV1alpha1().OpsConfigInfoes(v1alpha1.SystemNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return settings.Settings{}, c.listError("settings", "change", "", err)
	}
	objects := make([]*v1alpha1.OpsConfigInfo, len(list.Items))
	for i := range list.Items {
		objects[i] = &list.Items[i]
	}
	return settings.FromObjects(objects), nil
}

// callbackAddress returns the URL of the Knative Service callback.
func (c *clients) callbackAddress(ctx context.Context) (string, error) {
	services := schema.GroupVersionResource{Group: "serving.knative.dev", Version: "v1", Resource: "services"}
	service, err := c.dynamic.Resource(services).Namespace(v1alpha1.SystemNamespace).Get(ctx, "callback", metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("--callback is missing, and the Knative Service callback, whose URL is the default, cannot be read: %w", err)
	}
	address, _, _ := unstructured.NestedString(service.Object, "status", "url") // empty if malformed
	if address == "" {
		return "", errors.New("--callback is missing, and the Knative Service callback has no URL yet: wait until it is Ready, or pass --callback")
	}
	return address, nil
}

// maxTokenFile is the maximum size of --token-file, in bytes.
const maxTokenFile = 4096

// readToken reads the token of the platform; a token that was written with an editor ends in a
// newline.
func (a *app) readToken(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	from := a.In
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", fmt.Errorf("read --token-file: %w", err)
		}
		defer func() { _ = f.Close() }() // it was only read
		from = f
	}
	raw, err := io.ReadAll(io.LimitReader(from, maxTokenFile))
	if err != nil {
		return "", fmt.Errorf("read --token-file: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", errors.New("--token-file is empty or has more than one word: write the token, and nothing else")
	}
	return token, nil
}

// storeToken stores the token in its Secret, unless the Secret has changed since it was read.
func (c *clients) storeToken(ctx context.Context, secret *corev1.Secret, token tokenDecision) (*corev1.Secret, error) {
	data := map[string][]byte{altershield.TokenKey: []byte(token.value)}
	if token.previous != "" {
		data[altershield.PreviousTokenKey] = []byte(token.previous)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]string{"resourceVersion": secret.ResourceVersion}, "data": data})
	if err != nil {
		return nil, err
	}
	written, err := c.kube.CoreV1().Secrets(v1alpha1.SystemNamespace).Patch(ctx, secret.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return written, writeError(altershield.SecretName, err)
}

// storeConfigMap stores keys in the ConfigMap, unless it has changed since it was read.
func (c *clients) storeConfigMap(ctx context.Context, config *corev1.ConfigMap, changed map[string]string) error {
	if len(changed) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]string{"resourceVersion": config.ResourceVersion}, "data": changed})
	if err != nil {
		return err
	}
	_, err = c.kube.CoreV1().ConfigMaps(v1alpha1.SystemNamespace).Patch(ctx, config.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return writeError(altershield.ConfigMapName, err)
}

// writeError explains an error of a write.
func writeError(object string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s was changed meanwhile: repeat the command: %w", object, err)
	default:
		return fmt.Errorf("write %s: %w", object, err)
	}
}
