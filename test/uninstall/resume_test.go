//go:build controlplane

package uninstall

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/knativetraffic"
)

// service is a Knative Service that is suspended. Its annotation is the record of its traffic.
const service = `{"apiVersion":"serving.knative.dev/v1","kind":"Service","metadata":{"namespace":%q,"name":%q,
	"labels":{"altershield.defense.antgroup.com/suspend":"1700000000"},"annotations":{%q:%q}},"spec":{"traffic":%s}}
`

// Revision web-2 failed and is the latest one, and web-1 succeeded. The script has the decisions of
// internal/knativetraffic in another language, so each case is also decided by that package.
func TestResumeRestoresTheTrafficOfAKnativeServiceUnlessAPersonChangedIt(t *testing.T) {
	const latest, moved, pinned = `[{"latestRevision":true,"percent":100}]`, `[{"revisionName":"web-1","percent":100}]`,
		`[{"latestRevision":true,"percent":0,"tag":"unjudged"},{"revisionName":"web-1","percent":100}]`
	const held, repaired = `{"attempt":2,"traffic":{"failed":["web-2"],"to":"web-1","former":%s}}`,
		`{"kind":"repair","suspend":"1700000000","attempt":3,"traffic":{"failed":["web-2"],"to":"web-1","former":%s}}`
	failed := knativetraffic.Revisions{Names: []string{"web-2"}} // they get no traffic by name
	long := strings.Repeat("n", 55)
	cases := map[string]struct {
		former, current string
		restored        bool
	}{
		"moved":            {latest, moved, true},
		"with-default":     {latest, `[{"revisionName":"web-1","latestRevision":false,"percent":100}]`, true},
		"by-name":          {`[{"revisionName":"web-2","percent":100}]`, moved, true},
		"canary":           {`[{"revisionName":"web-1","percent":90},{"latestRevision":true,"percent":10}]`, moved, true},
		"beside-others":    {`[{"revisionName":"x","percent":30,"tag":"x"},{"revisionName":"web-2","percent":30},{"latestRevision":true,"percent":40,"tag":"next"}]`, `[{"revisionName":"x","percent":30,"tag":"x"},{"latestRevision":true,"percent":0,"tag":"next"},{"revisionName":"web-1","percent":70}]`, true},
		"to-a-tag":         {`[{"revisionName":"web-1","percent":0,"tag":"old"},{"latestRevision":true,"percent":100}]`, `[{"revisionName":"web-1","percent":100,"tag":"old"}]`, true},
		"pinned":           {latest, pinned, true},
		"pinned-and-moved": {`[{"latestRevision":true,"percent":60},{"revisionName":"web-2","percent":40}]`, pinned, true},
		"pinned-own-tag":   {`[{"latestRevision":true,"percent":100,"tag":"next"}]`, `[{"latestRevision":true,"percent":0,"tag":"next"},{"revisionName":"web-1","percent":100}]`, true},
		"pinned-tag-used":  {`[{"revisionName":"x","percent":0,"tag":"unjudged"},{"latestRevision":true,"percent":100}]`, `[{"revisionName":"x","percent":0,"tag":"unjudged"},{"revisionName":"web-1","percent":100}]`, true},
		long[1:]:           {latest, pinned, true},
		long:               {latest, pinned, false},

		"person-split":     {latest, `[{"revisionName":"web-1","percent":50},{"revisionName":"x","percent":50}]`, false},
		"person-tag":       {latest, `[{"revisionName":"web-1","percent":100,"tag":"old"}]`, false},
		"person-share":     {latest, `[{"latestRevision":true,"percent":10,"tag":"unjudged"},{"revisionName":"web-1","percent":90}]`, false},
		"person-elsewhere": {`[{"revisionName":"x","percent":100}]`, moved, false},
		"person-restored":  {`[{"revisionName":"web-2","percent":100}]`, latest, false},
		"person-failed":    {latest, `[{"revisionName":"web-2","percent":100}]`, false},
	}
	var manifest strings.Builder
	manifest.WriteString(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"held"}}{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"repaired"}}`)
	for name, tc := range cases {
		_, restored := knativetraffic.Restore(split(t, tc.current), split(t, tc.former), knativetraffic.Revisions{Names: []string{"web-2"}, Latest: true}, "web-1", name)
		if restored != tc.restored {
			t.Errorf("%s: the controller restores it: %t, want %t", name, restored, tc.restored)
		}
		fmt.Fprintf(&manifest, service, "held", name, v1alpha1.HoldAnnotation, fmt.Sprintf(held, tc.former), tc.current)
		fmt.Fprintf(&manifest, service, "repaired", name, v1alpha1.BypassAnnotation, fmt.Sprintf(repaired, tc.former), tc.current)
	}
	// The repair was of an earlier suspension, also with the same value, and the hold found no traffic to move.
	fmt.Fprintf(&manifest, service, "repaired", "earlier", v1alpha1.BypassAnnotation, strings.Replace(fmt.Sprintf(repaired, latest), "1700000000", "1600000000", 1), moved)
	fmt.Fprintf(&manifest, service, "repaired", "ended", v1alpha1.BypassAnnotation, strings.Replace(fmt.Sprintf(repaired, latest), `"attempt":3`, `"attempt":3,"ended":true`, 1), moved)
	fmt.Fprintf(&manifest, service, "held", "untouched", v1alpha1.HoldAnnotation, `{"attempt":2,"traffic":{"failed":["web-2"]}}`, moved)

	if err := plane.InstallServing(t.Context()); err != nil {
		t.Fatal(err)
	}
	kubectl(t, manifest.String(), "apply", "--server-side", "-f", "-")
	preview := uninstall(t, 0)
	for service, want := range map[string]bool{"held/moved": true, "held/person-split": true, "repaired/moved": true, "repaired/person-split": false, "repaired/earlier": false, "repaired/ended": false} {
		if strings.Contains(preview, "Service "+service+"\n") != want {
			t.Errorf("%s is held: %t, want %t:\n%s", service, !want, want, preview)
		}
	}
	uninstall(t, 0, "--yes", "--resume")

	for _, namespace := range []string{"held", "repaired"} {
		for name, tc := range cases {
			want := split(t, tc.current)
			if tc.restored {
				want, _ = knativetraffic.Move(split(t, tc.former), failed, "web-1")
			}
			if got := traffic(t, namespace, name); !knativetraffic.Same(split(t, got), want) {
				t.Errorf("%s/%s: spec.traffic is %s, want %v", namespace, name, got, want)
			}
		}
	}
	for service, want := range map[string]string{"repaired/earlier": moved, "repaired/ended": moved, "held/untouched": moved} {
		namespace, name, _ := strings.Cut(service, "/")
		if got := traffic(t, namespace, name); !knativetraffic.Same(split(t, got), split(t, want)) {
			t.Errorf("%s: spec.traffic is %s, want %s", service, got, want)
		}
	}
}

func split(t *testing.T, raw string) (s knativetraffic.Split) {
	t.Helper()
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func traffic(t *testing.T, namespace, name string) string {
	t.Helper()
	return kubectl(t, "", "get", "services.serving.knative.dev", name, "-n", namespace, "-o", "jsonpath={.spec.traffic}")
}
