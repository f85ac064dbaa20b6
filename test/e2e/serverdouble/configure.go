package serverdouble

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// baseURL is the key of the server's URL; without a value there is no server.
const baseURL = "base-url"

// configuration holds the required settings of a server, for the double.
func configuration() map[string]string {
	return map[string]string{
		baseURL:                   URL,
		"platform":                Platform,
		"tenant-code":             "demo",
		"change-scene-key":        "breakwater",
		"release-check-scene-key": "breakwater-release",
		"cluster-name":            "embedded",
	}
}

// Patch is a JSON merge patch, for kubectl or for a client.
type Patch struct {
	// Kind is configmap or secret.
	Kind string
	Name string
	Body string
}

// ConfigurePatches returns the patches that configure the double as the server.
// Their order avoids an incomplete configuration.
func ConfigurePatches() []Patch {
	return []Patch{
		{"secret", altershield.SecretName, encode("stringData", map[string]any{altershield.TokenKey: Token})},
		{"configmap", altershield.ConfigMapName, encode("data", values(func(value string) any { return value }))},
	}
}

// UnconfigurePatches returns the patches that undo ConfigurePatches.
func UnconfigurePatches() []Patch {
	return []Patch{
		{"configmap", altershield.ConfigMapName, encode("data", values(func(string) any { return nil }))},
		{"secret", altershield.SecretName, encode("data", map[string]any{altershield.TokenKey: nil})},
	}
}

func values(of func(string) any) map[string]any {
	out := map[string]any{}
	for key, value := range configuration() {
		out[key] = of(value)
	}
	return out
}

func encode(field string, value map[string]any) string {
	raw, err := json.Marshal(map[string]any{field: value})
	if err != nil { // strings always encode
		panic(err)
	}
	return string(raw)
}

// Configured returns the URL of the configured server; empty for none.
func Configured(ctx context.Context, kube kubernetes.Interface) (string, error) {
	cm, err := kube.CoreV1().ConfigMaps(v1alpha1.SystemNamespace).Get(ctx, altershield.ConfigMapName, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read the configuration of the server: %w", err)
	}
	return cm.Data[baseURL], nil
}

// Configure configures the double as the server. It returns an error when
// another server is configured.
func Configure(ctx context.Context, kube kubernetes.Interface) error {
	server, err := Configured(ctx, kube)
	if err != nil {
		return err
	}
	if server != "" && server != URL {
		return fmt.Errorf("server %s is configured in ConfigMap %s: remove it first", server, altershield.ConfigMapName)
	}
	return apply(ctx, kube, ConfigurePatches())
}

// Unconfigure undoes Configure, including that of another process. It does
// nothing when the double is not configured.
func Unconfigure(ctx context.Context, kube kubernetes.Interface) error {
	server, err := Configured(ctx, kube)
	if err != nil || server != URL {
		return err
	}
	return apply(ctx, kube, UnconfigurePatches())
}

func apply(ctx context.Context, kube kubernetes.Interface, patches []Patch) error {
	core, options := kube.CoreV1(), metav1.PatchOptions{}
	for _, p := range patches {
		var err error
		if p.Kind == "secret" {
			_, err = core.Secrets(v1alpha1.SystemNamespace).Patch(ctx, p.Name, types.MergePatchType, []byte(p.Body), options)
		} else {
			_, err = core.ConfigMaps(v1alpha1.SystemNamespace).Patch(ctx, p.Name, types.MergePatchType, []byte(p.Body), options)
		}
		if err != nil {
			return fmt.Errorf("configure the server: %w", err)
		}
	}
	return nil
}
