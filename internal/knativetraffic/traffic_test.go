package knativetraffic

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func split(t *testing.T, raw string) Split {
	t.Helper()
	var s Split
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// Revision c failed and is the latest, b failed before with the same version, and a is good.
func TestTheShareOfAFailedRevisionMovesToTheLastGoodOne(t *testing.T) {
	failed := Revisions{Names: []string{"b", "c"}, Latest: true}
	for name, tc := range map[string]struct {
		before, good, want string
		moved              bool
	}{
		"all to the latest":           {`[{"latestRevision":true,"percent":100}]`, "a", `[{"revisionName":"a","latestRevision":false,"percent":100}]`, true},
		"by name":                     {`[{"revisionName":"c","percent":100}]`, "a", `[{"revisionName":"a","latestRevision":false,"percent":100}]`, true},
		"a canary":                    {`[{"revisionName":"a","percent":90},{"latestRevision":true,"percent":10}]`, "a", `[{"revisionName":"a","percent":100}]`, true},
		"the entries of others stay":  {`[{"revisionName":"x","percent":30,"tag":"x"},{"revisionName":"c","percent":70}]`, "a", `[{"revisionName":"x","percent":30,"tag":"x"},{"revisionName":"a","latestRevision":false,"percent":70}]`, true},
		"a tag stays without a share": {`[{"latestRevision":true,"percent":100,"tag":"next"}]`, "a", `[{"latestRevision":true,"percent":0,"tag":"next"},{"revisionName":"a","latestRevision":false,"percent":100}]`, true},
		"to an entry with a tag":      {`[{"revisionName":"a","percent":0,"tag":"old"},{"latestRevision":true,"percent":100}]`, "a", `[{"revisionName":"a","percent":100,"tag":"old"}]`, true},
		"two failed entries":          {`[{"revisionName":"b","percent":40},{"latestRevision":true,"percent":60}]`, "a", `[{"revisionName":"a","latestRevision":false,"percent":100}]`, true},
		"a field that is not known":   {`[{"revisionName":"x","percent":50,"f":1},{"latestRevision":true,"percent":50}]`, "x", `[{"revisionName":"x","percent":100,"f":1}]`, true},
		"no share":                    {`[{"revisionName":"a","percent":100},{"latestRevision":true,"tag":"next"}]`, "a", `[{"revisionName":"a","percent":100},{"latestRevision":true,"tag":"next"}]`, false},
		"no good Revision":            {`[{"latestRevision":true,"percent":100}]`, "", `[{"latestRevision":true,"percent":100}]`, false},
		"no traffic":                  {`null`, "a", `null`, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := split(t, tc.before)
			got, moved := Move(before, failed, tc.good)
			if moved != tc.moved || !Same(got, split(t, tc.want)) {
				t.Errorf("Move = %v, %t, want %s, %t", got, moved, tc.want, tc.moved)
			}
			if diff := cmp.Diff(split(t, tc.before), before); diff != "" {
				t.Errorf("the argument changed: %s", diff)
			}
			if moved && got.total() != 100 {
				t.Errorf("%d percent", got.total())
			}
			if again, twice := Move(got, failed, tc.good); twice || !Same(again, got) {
				t.Errorf("a second Move = %v, %t", again, twice)
			}
			if back, ok := Restore(got, before, failed, tc.good, "web"); ok != moved || !Same(back, before) && moved {
				t.Errorf("Restore = %v, %t", back, ok)
			}
		})
	}
}

func (s Split) total() (sum int64) {
	for _, entry := range s {
		sum += percent(entry)
	}
	return sum
}

func TestASplitThatAPersonChangedIsNotRestored(t *testing.T) {
	former, failed := split(t, `[{"latestRevision":true,"percent":100}]`), Revisions{Names: []string{"c"}, Latest: true}
	for name, tc := range map[string]struct {
		current  string
		restored bool
	}{
		"as it was moved":        {`[{"revisionName":"a","percent":100}]`, true},
		"with Serving's default": {`[{"revisionName":"a","percent":100,"latestRevision":false}]`, true},
		"another split":          {`[{"revisionName":"a","percent":50},{"revisionName":"x","percent":50}]`, false},
		"a tag":                  {`[{"revisionName":"a","percent":100,"tag":"old"}]`, false},
		"restored by a person":   {`[{"latestRevision":true,"percent":100}]`, false},
	} {
		t.Run(name, func(t *testing.T) {
			current := split(t, tc.current)
			got, ok := Restore(current, former, failed, "a", "web")
			if want := map[bool]Split{true: former, false: current}[tc.restored]; ok != tc.restored || !Same(got, want) {
				t.Errorf("Restore = %v, %t", got, ok)
			}
		})
	}
}

func TestWhichEntriesAreForFailedRevisions(t *testing.T) {
	for name, tc := range map[string]struct {
		entry  string
		latest bool
		want   int64
	}{
		"the latest, which failed":     {`{"latestRevision":true,"percent":7}`, true, 7},
		"the latest, which is another": {`{"latestRevision":true,"percent":7}`, false, 0},
		"by name":                      {`{"revisionName":"c","latestRevision":false,"percent":7}`, false, 7},
		"another name":                 {`{"revisionName":"a","percent":7}`, true, 0},
		"without a percentage":         {`{"revisionName":"c"}`, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Revisions{Names: []string{"c"}, Latest: tc.latest}).Share(split(t, "["+tc.entry+"]")); got != tc.want {
				t.Errorf("share %d, want %d", got, tc.want)
			}
		})
	}
}
