package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiversion "k8s.io/apimachinery/pkg/version"
	"knative.dev/pkg/leaderelection"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/observability"
	"knative.dev/pkg/version"
	"sigs.k8s.io/yaml"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// example is the key that explains all others.
const example = "_example"

func TestConfigMapsOfTheManifestsAreValid(t *testing.T) {
	token := &corev1.Secret{Data: map[string][]byte{altershield.TokenKey: []byte("t")}}
	tests := map[string]struct {
		file string
		read func(map[string]string) error
	}{
		"logging": {"200-config-logging.yaml", func(data map[string]string) error {
			_, err := logging.NewConfigFromMap(data)
			return err
		}},
		"observability": {"201-config-observability.yaml", func(data map[string]string) error {
			_, err := observability.NewFromMap(data)
			return err
		}},
		"leader election": {"202-config-leader-election.yaml", func(data map[string]string) error {
			_, err := leaderelection.NewConfigFromMap(data)
			return err
		}},
		"kinds of workloads": {"211-config-workloads.yaml", func(data map[string]string) error {
			_, err := workload.Kinds(data)
			return err
		}},
		"the AlterShield server": {"220-config-altershield.yaml", func(data map[string]string) error {
			_, err := altershield.ParseConfig(&corev1.ConfigMap{Data: data}, token)
			return err
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "core", tc.file))
			if err != nil {
				t.Fatal(err)
			}
			var cm corev1.ConfigMap
			if err := yaml.UnmarshalStrict(raw, &cm); err != nil {
				t.Fatal(err)
			}
			if err := tc.read(cm.Data); err != nil {
				t.Errorf("as installed: %v", err)
			}
			explained := map[string]string{}
			if err := yaml.UnmarshalStrict([]byte(cm.Data[example]), &explained); err != nil {
				t.Fatalf("%s: %v", example, err)
			}
			if len(explained) == 0 {
				t.Errorf("%s explains nothing", example)
			}
			if err := tc.read(explained); err != nil {
				t.Errorf("as explained: %v", err)
			}
		})
	}
}

// The callback finds a batch by a selectable field of ChangePods, which an older API
// server drops from the CRD: it would answer each verdict with 503.
func TestKubernetesWithoutSelectableFieldsIsNotSupported(t *testing.T) {
	const minimum = "1.31" // CustomResourceFieldSelectors is on by default
	root := filepath.Join("..", "..", "..")
	crd, err := os.ReadFile(filepath.Join(root, "config", "core", "102-crd-changepods.yaml"))
	if err != nil || !strings.Contains(string(crd), "selectableFields:") {
		t.Fatalf("ChangePods have no selectable field (%v); an older Kubernetes may do", err)
	}
	for _, file := range []string{"500-controller.yaml", "420-webhook-deployment.yaml"} {
		d := builder.Manifests[appsv1.Deployment](t, filepath.Join(root, "config", "core", file))[0]
		env := d.Spec.Template.Spec.Containers[0].Env
		i := slices.IndexFunc(env, func(v corev1.EnvVar) bool { return v.Name == version.KubernetesMinVersionKey })
		if i < 0 {
			t.Fatalf("%s has no %s", file, version.KubernetesMinVersionKey)
		}
		t.Setenv(env[i].Name, env[i].Value)
		for server, supported := range map[string]bool{"v1.30.14": false, "v" + minimum + ".0": true, "v1.35.0": true} {
			err := version.CheckMinimumVersion(versioner(server))
			if (err == nil) != supported || err != nil && !strings.Contains(err.Error(), minimum) {
				t.Errorf("%s on %s: %v, want supported %t", file, server, err, supported)
			}
		}
	}
	for _, name := range []string{"README.md", "README.zh-CN.md"} {
		page, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), "Kubernetes "+minimum) {
			t.Errorf("%s does not name Kubernetes %s", name, minimum)
		}
	}
}

// versioner is an API server of a version.
type versioner string

func (v versioner) ServerVersion() (*apiversion.Info, error) {
	return &apiversion.Info{GitVersion: string(v)}, nil
}
