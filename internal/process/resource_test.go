package process

import (
	"os"
	"testing"

	"go.opentelemetry.io/otel/attribute"
)

func TestTheResourceOfAProcessNamesItsPod(t *testing.T) {
	pod, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	resource, err := resourceOf("submit")
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[attribute.Key]string{
		"service.name": "submit", "service.instance.id": pod, "k8s.pod.name": pod,
	} {
		if got, _ := resource.Set().Value(key); got.AsString() != want {
			t.Errorf("%s is %q, want %q", key, got.AsString(), want)
		}
	}
}
