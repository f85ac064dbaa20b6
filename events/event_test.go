package events

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

func TestEveryTypeHasASample(t *testing.T) {
	var have []string
	for _, d := range samples() {
		have = append(have, d.Type())
	}
	if diff := cmp.Diff(Types(), have); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
}

func TestEventsMatchTheGoldenFiles(t *testing.T) {
	for _, d := range samples() {
		t.Run(short(d.Type()), func(t *testing.T) {
			e, err := New(d)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := json.Indent(&got, raw, "", "  "); err != nil {
				t.Fatal(err)
			}
			got.WriteByte('\n')
			file := filepath.Join("testdata", short(d.Type())+".json")
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("%s (-want +got), or run with -update:\n%s", file, diff)
			}
		})
	}
}

func TestParsingReturnsTheSentData(t *testing.T) {
	for _, d := range samples() {
		t.Run(short(d.Type()), func(t *testing.T) {
			e, err := New(d)
			if err != nil {
				t.Fatal(err)
			}
			got, err := parse(e)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(d, got); diff != "" {
				t.Errorf("data (-sent +parsed):\n%s", diff)
			}
			if e.ID() != got.ID() || e.Source() != got.Source() || e.Subject() != got.Subject() {
				t.Errorf("attributes do not match the data: %s", e)
			}
		})
	}
}

func TestParseRejectsOtherTypes(t *testing.T) {
	e, err := New(samples()[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, parse := range map[string]func(cloudevents.Event) error{
		"ChangePodReady":   func(e cloudevents.Event) error { _, err := ParseChangePodReady(e); return err },
		"ChangePodVerdict": func(e cloudevents.Event) error { _, err := ParseChangePodVerdict(e); return err },
		"ExternalVerdict":  func(e cloudevents.Event) error { _, err := ParseExternalVerdict(e); return err },
		"ChangeWorkload":   func(e cloudevents.Event) error { _, err := ParseChangeWorkload(e); return err },
		"ReleaseDenied":    func(e cloudevents.Event) error { _, err := ParseReleaseDenied(e); return err },
		"DeletionDenied":   func(e cloudevents.Event) error { _, err := ParseDeletionDenied(e); return err },
		"DeletionFlow":     func(e cloudevents.Event) error { _, err := ParseDeletionFlow(e); return err },
	} {
		if parse(e) == nil {
			t.Errorf("%s parses a %s", name, e.Type())
		}
	}
}
