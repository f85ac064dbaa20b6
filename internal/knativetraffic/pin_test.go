package knativetraffic

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Revision a has the traffic of the latest one.
func TestTheShareOfTheLatestRevisionIsPinned(t *testing.T) {
	long := strings.Repeat("n", 55)
	for name, tc := range map[string]struct {
		before, to, service, want string
		pinned                    bool
	}{
		"all to the latest":            {`[{"latestRevision":true,"percent":100}]`, "a", "web", `[{"latestRevision":true,"percent":0,"tag":"unjudged"},{"revisionName":"a","percent":100}]`, true},
		"no traffic is the default":    {`null`, "a", "web", `[{"latestRevision":true,"percent":0,"tag":"unjudged"},{"revisionName":"a","percent":100}]`, true},
		"a split of a person":          {`[{"revisionName":"x","percent":90},{"latestRevision":true,"percent":10}]`, "a", "web", `[{"revisionName":"x","percent":90},{"latestRevision":true,"percent":0,"tag":"unjudged"},{"revisionName":"a","percent":10}]`, true},
		"it has a tag":                 {`[{"latestRevision":true,"percent":100,"tag":"next"}]`, "a", "web", `[{"latestRevision":true,"percent":0,"tag":"next"},{"revisionName":"a","percent":100}]`, true},
		"it has an entry with a tag":   {`[{"latestRevision":true,"percent":100},{"latestRevision":true,"tag":"next"}]`, "a", "web", `[{"latestRevision":true,"tag":"next"},{"revisionName":"a","percent":100}]`, true},
		"two entries":                  {`[{"latestRevision":true,"percent":60},{"latestRevision":true,"percent":40}]`, "a", "web", `[{"latestRevision":true,"percent":0,"tag":"unjudged"},{"revisionName":"a","percent":100}]`, true},
		"another Revision has the tag": {`[{"revisionName":"x","percent":0,"tag":"unjudged"},{"latestRevision":true,"percent":100}]`, "a", "web", `[{"revisionName":"x","percent":0,"tag":"unjudged"},{"revisionName":"a","percent":100}]`, true},
		"the longest name with a tag":  {`[{"latestRevision":true,"percent":100}]`, "a", long[1:], `[{"latestRevision":true,"percent":0,"tag":"unjudged"},{"revisionName":"a","percent":100}]`, true},
		"the host name is too long":    {`[{"latestRevision":true,"percent":100}]`, "a", long, `[{"revisionName":"a","percent":100}]`, true},
		"a share by name":              {`[{"revisionName":"b","percent":100}]`, "a", "web", `[{"revisionName":"b","percent":100}]`, false},
		"only a tag":                   {`[{"revisionName":"a","percent":100},{"latestRevision":true,"tag":"next"}]`, "a", "web", `[{"revisionName":"a","percent":100},{"latestRevision":true,"tag":"next"}]`, false},
		"no Revision is Ready":         {`[{"latestRevision":true,"percent":100}]`, "", "web", `[{"latestRevision":true,"percent":100}]`, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := split(t, tc.before)
			got, pinned := Pin(before, tc.to, tc.service)
			if pinned != tc.pinned || !Same(got, split(t, tc.want)) {
				t.Errorf("Pin = %v, %t, want %s, %t", got, pinned, tc.want, tc.pinned)
			}
			if diff := cmp.Diff(split(t, tc.before), before); diff != "" {
				t.Errorf("the argument changed: %s", diff)
			}
			if got.total() != 100 {
				t.Errorf("%d percent", got.total())
			}
			if again, twice := Pin(got, tc.to, tc.service); twice || !Same(again, got) {
				t.Errorf("a second Pin = %v, %t", again, twice)
			}
			if back, ok := Restore(got, Defaulted(before), Revisions{Latest: true}, tc.to, tc.service); ok != pinned || !Same(back, Defaulted(before)) {
				t.Errorf("Restore = %v, %t", back, ok)
			}
		})
	}
}

// The Revision fails: a share that it has by name moves, too.
func TestAPinnedSplitIsRestoredAfterAFail(t *testing.T) {
	former, failed := split(t, `[{"latestRevision":true,"percent":60},{"revisionName":"b","percent":40}]`), Revisions{Names: []string{"b"}, Latest: true}
	pinned, _ := Pin(former, "a", "web")
	moved, ok := Move(pinned, failed, "a")
	if want := split(t, `[{"latestRevision":true,"percent":0,"tag":"unjudged"},{"revisionName":"a","percent":100}]`); !ok || !Same(moved, want) {
		t.Fatalf("Move = %v, %t", moved, ok)
	}
	for name, tc := range map[string]struct {
		current  Split
		restored bool
	}{
		"as it was moved":            {moved, true},
		"another split":              {split(t, `[{"revisionName":"a","percent":50},{"revisionName":"x","percent":50}]`), false},
		"another tag":                {split(t, `[{"latestRevision":true,"percent":0,"tag":"x"},{"revisionName":"a","percent":100}]`), false},
		"a person gave it the share": {split(t, `[{"latestRevision":true,"percent":10,"tag":"unjudged"},{"revisionName":"a","percent":90}]`), false},
	} {
		if got, ok := Restore(tc.current, former, failed, "a", "web"); ok != tc.restored || ok && !Same(got, former) {
			t.Errorf("%s: Restore = %v, %t", name, got, ok)
		}
	}
}
