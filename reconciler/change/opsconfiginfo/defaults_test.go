package opsconfiginfo

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

func TestDecideDefault(t *testing.T) {
	tests := map[string]struct {
		in   Default
		want DefaultDecision
	}{
		"it is created once":                                     {Default{}, DefaultDecision{Create: true, Record: true}},
		"one that a person deleted stays deleted":                {Default{Recorded: true}, DefaultDecision{}},
		"one that was there before is recorded":                  {Default{Exists: true}, DefaultDecision{Record: true}},
		"one that is there and recorded is left alone":           {Default{Exists: true, Recorded: true}, DefaultDecision{}},
		"where a person's own object has the type, none is made": {Default{TypeTaken: true}, DefaultDecision{Record: true}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, DecideDefault(tc.in)); diff != "" {
				t.Error("(-want +got):", diff)
			}
		})
	}
}

func TestTheDefaultObjectsAreValidAndChangeNothing(t *testing.T) {
	var all []*v1alpha1.OpsConfigInfo
	for name, spec := range defaults() {
		c := object(name, 0, spec)
		if err := c.Validate(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		all = append(all, c)
	}
	// So deleting one of them has no effect either.
	if diff := cmp.Diff(settings.Default(), settings.FromObjects(all)); diff != "" {
		t.Error("(-default +with objects):", diff)
	}
}
