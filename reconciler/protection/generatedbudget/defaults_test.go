package generatedbudget

import (
	"os"
	"strings"
	"testing"

	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/yaml"

	"github.com/breakwater-dev/breakwater/internal/generatedbudget"
)

func TestAnInvalidDefaultKeepsTheLastValidOne(t *testing.T) {
	recorder, changed := record.NewFakeRecorder(5), 0
	d := &defaults{recorder: recorder, logger: zaptest.NewLogger(t).Sugar(), changed: func() { changed++ }}
	check := func(want string) {
		t.Helper()
		limits := d.get()
		if got := limits.MaxUnavailable.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	check("25%")
	d.observe(&corev1.ConfigMap{Data: map[string]string{"max-unavailable": "10%"}})
	check("10%")
	if changed != 1 || len(recorder.Events) > 0 {
		t.Errorf("%d reconciliations of all workloads, %d Events", changed, len(recorder.Events))
	}
	d.observe(&corev1.ConfigMap{Data: map[string]string{"max-unavailable": "few"}})
	check("10%")
	if changed != 1 || len(recorder.Events) != 1 {
		t.Errorf("%d reconciliations of all workloads, %d Events", changed, len(recorder.Events))
	}
	// The default is in memory: a controller that restarts does not have it.
	if e := <-recorder.Events; !strings.Contains(e, "the default is maxUnavailable 10% until the controller restarts, and then maxUnavailable 25%: ") {
		t.Error(e)
	}
	d.observe(&corev1.ConfigMap{}) // the ConfigMap was deleted
	check("25%")
}

func TestAnInvalidDefaultAtTheStart(t *testing.T) {
	recorder := record.NewFakeRecorder(5)
	d := &defaults{recorder: recorder, logger: zaptest.NewLogger(t).Sugar()}
	d.observe(&corev1.ConfigMap{Data: map[string]string{"max-unavailable": "few"}})
	if e := <-recorder.Events; !strings.Contains(e, "Warning ConfigInvalid the default is maxUnavailable 25%: ") {
		t.Error(e)
	}
}

func TestTheInstalledDefaultIsValid(t *testing.T) {
	raw, err := os.ReadFile("../../../config/protection/130-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range strings.Split(string(raw), "\n---\n") {
		var cm corev1.ConfigMap
		if err := yaml.Unmarshal([]byte(doc), &cm); err != nil {
			t.Fatal(err)
		}
		if cm.Name != generatedbudget.ConfigName {
			continue
		}
		if limits, err := generatedbudget.ParseDefault(cm.Data); err != nil || limits.MaxUnavailable.String() != "25%" {
			t.Errorf("%+v, %v", limits, err)
		}
		return
	}
	t.Errorf("no ConfigMap %s is installed", generatedbudget.ConfigName)
}
