package main

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/leaderelection"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/observability"
	"sigs.k8s.io/yaml"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/internal/workload"
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
