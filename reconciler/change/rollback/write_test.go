package rollback

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/liveworkload"
)

// The API server replaces half a character by a longer one. A message that is then too
// long is rejected with the whole write.
func TestTheMessageOfARollbackIsTruncatedBetweenRunes(t *testing.T) {
	for extra := range 3 {
		decision := Decision{Message: strings.Repeat("a", extra) + strings.Repeat("失", maxMessage)}
		got := newRollback(Input{}, decision, Target{Version: "good"}).Message
		if !utf8.ValidString(got) || len(got) > maxMessage || len(got) < maxMessage-2 {
			t.Errorf("%d bytes that end in %q", len(got), got[len(got)-4:])
		}
	}
}

// The Service was scaled after the version succeeded, which is no release.
func TestARollbackOfAKnativeServiceKeepsItsScale(t *testing.T) {
	template := func(image, maxScale string) json.RawMessage {
		return json.RawMessage(`{"metadata":{"annotations":{"autoscaling.knative.dev/max-scale":"` + maxScale + `"}},"spec":{"containers":[{"image":"` + image + `"}]}}`)
	}
	w := &liveworkload.Workload{Workload: &workload.Workload{Kind: workload.KnativeService}, RawTemplate: template("web:2", "100")}
	patch, err := patchOf(w, v1alpha1.Rollback{}, Target{Template: template("web:1", "10")})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"op":"replace","path":"/spec/template","value":` + string(template("web:1", "100")) + `}`; !strings.Contains(string(patch), want) {
		t.Errorf("patch %s, want %s", patch, want)
	}
}
