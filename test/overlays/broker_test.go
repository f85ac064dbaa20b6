package overlays

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const eventing = "eventing.knative.dev"

// broker returns the class of the only Broker and the object of its
// spec.config.
func broker(t *testing.T, all []*unstructured.Unstructured) (class string, configuration *unstructured.Unstructured) {
	t.Helper()
	brokers := ofKind(all, eventing, "Broker")
	if len(brokers) != 1 {
		t.Fatalf("%d Brokers", len(brokers))
	}
	ref, _, err := unstructured.NestedStringMap(brokers[0].Object, "spec", "config")
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range all {
		if u.GetAPIVersion() == ref["apiVersion"] && u.GetKind() == ref["kind"] &&
			u.GetNamespace() == ref["namespace"] && u.GetName() == ref["name"] {
			configuration = u
		}
	}
	if configuration == nil {
		t.Fatalf("no object matches %v", ref)
	}
	return brokers[0].GetAnnotations()["eventing.knative.dev/broker.class"], configuration
}

// The Broker for Kafka requires these keys to become ready.
func TestTheKafkaBrokerHasItsRequiredSettings(t *testing.T) {
	class, configuration := broker(t, render(t, overlay("kafka")))
	if class != "Kafka" {
		t.Errorf("class %s", class)
	}
	data, _, err := unstructured.NestedStringMap(configuration.Object, "data")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"default.topic.partitions", "default.topic.replication.factor"} {
		if n, err := strconv.ParseInt(data[key], 10, 16); err != nil || n < 1 {
			t.Errorf("%s: %q is not a number above 0", key, data[key])
		}
	}
	if !strings.Contains(data["bootstrap.servers"], ":") {
		t.Errorf("bootstrap.servers: %q has no port", data["bootstrap.servers"])
	}
	for key := range data {
		if !slices.Contains([]string{"bootstrap.servers", "default.topic.partitions", "default.topic.replication.factor", "auth.secret.ref.name"}, key) &&
			!strings.HasPrefix(key, "default.topic.config.") {
			t.Errorf("unknown key %s", key)
		}
	}
}

func TestTheRabbitMQBrokerHasItsConfiguration(t *testing.T) {
	class, configuration := broker(t, render(t, overlay("rabbitmq")))
	if class != "RabbitMQBroker" || configuration.GetKind() != "RabbitmqBrokerConfig" {
		t.Errorf("class %s, config %s", class, configuration.GetKind())
	}
}

// subscription is the event types and the delivery of one function.
type subscription struct {
	Function, Type string
	Delivery       map[string]any
}

// subscriptions reads Triggers with either kind of filter.
func subscriptions(t *testing.T, all []*unstructured.Unstructured) []subscription {
	t.Helper()
	var out []subscription
	for _, trigger := range ofKind(all, eventing, "Trigger") {
		s := subscription{}
		s.Function, _, _ = unstructured.NestedString(trigger.Object, "spec", "subscriber", "ref", "name")
		s.Delivery, _, _ = unstructured.NestedMap(trigger.Object, "spec", "delivery")
		filters, _, _ := unstructured.NestedSlice(trigger.Object, "spec", "filters")
		types := exact(filters)
		if old, _, _ := unstructured.NestedString(trigger.Object, "spec", "filter", "attributes", "type"); old != "" {
			types = append(types, old)
		}
		if len(types) == 0 {
			t.Errorf("Trigger %s has no filter that this test can read", trigger.GetName())
		}
		for _, name := range types {
			s.Type = name
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b subscription) int { return strings.Compare(a.Function+a.Type, b.Function+b.Type) })
	return out
}

// exact collects the types of exact filters and of any-filters of exact ones.
func exact(filters []any) []string {
	var out []string
	for _, f := range filters {
		filter, _ := f.(map[string]any)
		if name, ok, _ := unstructured.NestedString(filter, "exact", "type"); ok {
			out = append(out, name)
		}
		if some, ok := filter["any"].([]any); ok {
			out = append(out, exact(some)...)
		}
	}
	return out
}

// ofRabbitMQ are the overlays for RabbitMQ of the parts that have Triggers.
var ofRabbitMQ = map[string]string{"core": "rabbitmq", "judge": "rabbitmq/judge", "notify": "rabbitmq/notify"}

// The Broker for RabbitMQ supports only spec.filter; a Trigger without it
// receives every event.
func TestTheRabbitMQOverlaysHaveTheSubscriptionsOfTheirParts(t *testing.T) {
	for part, name := range ofRabbitMQ {
		plain, there := render(t, filepath.Join(config, part)), render(t, overlay(name))
		if diff := cmp.Diff(subscriptions(t, plain), subscriptions(t, there)); diff != "" {
			t.Errorf("extend config/overlays/%s (-%s +rabbitmq):\n%s", name, part, diff)
		}
		for _, trigger := range ofKind(there, eventing, "Trigger") {
			if _, ok, _ := unstructured.NestedSlice(trigger.Object, "spec", "filters"); ok {
				t.Errorf("Trigger %s has spec.filters", trigger.GetName())
			}
		}
	}
}

// By default the Broker for RabbitMQ delivers one event of a Trigger at a time.
func TestTriggersOfRabbitMQDeliverAsManyEventsAsAReplicaHandles(t *testing.T) {
	for _, name := range ofRabbitMQ {
		all := render(t, overlay(name))
		targets := map[string]string{}
		for _, f := range ofKind(all, "serving.knative.dev", "Service") {
			targets[f.GetName()], _, _ = unstructured.NestedString(f.Object, "spec", "template", "metadata", "annotations", "autoscaling.knative.dev/target")
		}
		for _, trigger := range ofKind(all, eventing, "Trigger") {
			function, _, _ := unstructured.NestedString(trigger.Object, "spec", "subscriber", "ref", "name")
			if got := trigger.GetAnnotations()["rabbitmq.eventing.knative.dev/parallelism"]; got == "" || got != targets[function] {
				t.Errorf("Trigger %s delivers %q events in parallel, want %q", trigger.GetName(), got, targets[function])
			}
		}
	}
}
