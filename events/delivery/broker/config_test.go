package broker

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"knative.dev/eventing/pkg/apis/config"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	duckv1 "knative.dev/pkg/apis/duck/v1"
	"sigs.k8s.io/yaml"
)

func TestTheReferenceRequiresAllKeys(t *testing.T) {
	complete := map[string]string{
		"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "namespace": "some", "name": "default",
	}
	without := func(key string) map[string]string {
		data := map[string]string{}
		for k, v := range complete {
			if k != key {
				data[k] = v
			}
		}
		return data
	}
	for name, tc := range map[string]struct {
		data map[string]string
		want string // part of the error; empty means no error
	}{
		"complete":           {complete, ""},
		"absent":             {nil, "absent or empty"},
		"without apiVersion": {without("apiVersion"), "apiVersion"},
		"without kind":       {without("kind"), "kind"},
		"without namespace":  {without("namespace"), "namespace"},
		"without name":       {without("name"), "name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(&corev1.ConfigMap{Data: tc.data})
			if tc.want == "" {
				if err != nil {
					t.Errorf("parse: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("parse: %v, want an error with %q", err, tc.want)
			}
		})
	}
}

func TestTheInstalledReferenceNamesTheInstalledBroker(t *testing.T) {
	var cm corev1.ConfigMap
	read(t, "210-config-broker.yaml", &cm)
	got, err := parse(&cm)
	if err != nil {
		t.Fatal(err)
	}
	var broker eventingv1.Broker
	read(t, "300-broker.yaml", &broker)
	if err := broker.Validate(t.Context()); err != nil {
		t.Error(err)
	}
	want := duckv1.KReference{
		APIVersion: broker.APIVersion, Kind: broker.Kind, Namespace: broker.Namespace, Name: broker.Name,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reference (-want +got):\n%s", diff)
	}
}

// Knative gives a Broker without spec.config the configuration of the cluster's default class, also if it
// has another class, and then it never becomes Ready.
func TestNoDefaultOfTheClusterConfiguresTheInstalledBroker(t *testing.T) {
	defaults, err := config.NewDefaultsConfigFromMap(map[string]string{config.BrokerDefaultsKey: `
clusterDefault:
  brokerClass: Kafka
  apiVersion: v1
  kind: ConfigMap
  name: kafka-broker-config
  namespace: knative-eventing
`})
	if err != nil {
		t.Fatal(err)
	}
	ctx := config.ToContext(t.Context(), &config.Config{Defaults: defaults})
	for _, file := range []string{"300-broker.yaml", "../overlays/kafka/broker.yaml", "../overlays/rabbitmq/broker.yaml"} {
		var broker eventingv1.Broker
		read(t, file, &broker)
		want := broker.DeepCopy().Spec.Config
		broker.SetDefaults(ctx)
		if diff := cmp.Diff(want, broker.Spec.Config); diff != "" {
			t.Errorf("spec.config of %s (-manifest +defaulted):\n%s", file, diff)
		}
	}
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile("../../../config/core/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		t.Fatal(err)
	}
}
