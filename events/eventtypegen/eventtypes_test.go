package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"knative.dev/eventing/pkg/apis/eventing/v1beta2"
	"knative.dev/eventing/pkg/apis/eventing/v1beta3"

	"github.com/breakwater-dev/breakwater/events"
)

func TestManifestsMatchTheEventTypes(t *testing.T) {
	all := entries()
	for _, name := range events.Types() {
		if _, ok := all[name]; !ok {
			t.Errorf("%s has no entry", name)
		}
		delete(all, name)
	}
	if len(all) > 0 {
		t.Errorf("entries without a type: %v", all)
	}
	if _, err := manifests(); err != nil {
		t.Error(err)
	}
}

func TestManifestsAreValid(t *testing.T) {
	for name, e := range entries() {
		if err := eventType(name, e).Validate(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestManifestsSurviveConversionToTheStorageVersion(t *testing.T) {
	for name, e := range entries() {
		applied := eventType(name, e)
		var stored v1beta2.EventType
		if err := stored.ConvertFrom(t.Context(), applied); err != nil {
			t.Fatal(err)
		}
		var live v1beta3.EventType
		if err := stored.ConvertTo(t.Context(), &live); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(applied.Spec, live.Spec); diff != "" {
			t.Errorf("%s (-applied +live):\n%s", name, diff)
		}
	}
}
