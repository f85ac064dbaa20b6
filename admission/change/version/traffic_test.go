package version

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/change/suspend"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/knativetraffic"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

const (
	latest     = `[{"latestRevision":true,"percent":100}]`
	pinned     = `[{"latestRevision":true,"percent":0,"tag":"unjudged"},{"latestRevision":false,"percent":100,"revisionName":"a"}]`
	pinnedToX  = `[{"latestRevision":true,"percent":0,"tag":"unjudged"},{"latestRevision":false,"percent":100,"revisionName":"x"}]`
	canary     = `[{"revisionName":"x","percent":90},{"latestRevision":true,"percent":10}]`
	canaryPins = `[{"percent":90,"revisionName":"x"},{"latestRevision":true,"percent":0,"tag":"unjudged"},{"latestRevision":false,"percent":10,"revisionName":"a"}]`
	named      = `[{"percent":100,"revisionName":"x"}]`
)

func trafficOf(t *testing.T, raw string) (s knativetraffic.Split) {
	t.Helper()
	if raw == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// Revision a has the traffic. During a hold Revision b is Ready and not judged.
func TestARevisionGetsNoTrafficUntilItIsJudged(t *testing.T) {
	held := func(to, former string) *v1alpha1.Hold {
		return &v1alpha1.Hold{Attempt: 2, UntilJudged: true, Traffic: &v1alpha1.HeldTraffic{To: to, Former: trafficOf(t, former)}}
	}
	for name, tc := range map[string]struct {
		in TrafficInput
		// after is spec.traffic of the update, former that of the record, and split the new one.
		after, outcome, former, split string
	}{
		"a release":                                       {TrafficInput{JudgeBeforeTraffic: true, Released: true, Ready: "a"}, latest, TrafficPinned, latest, pinned},
		"of a manifest without traffic":                   {TrafficInput{JudgeBeforeTraffic: true, Released: true, Ready: "a"}, "", TrafficPinned, latest, pinned},
		"a part of the traffic":                           {TrafficInput{JudgeBeforeTraffic: true, Released: true, Ready: "a"}, canary, TrafficPinned, canary, canaryPins},
		"a rollback":                                      {TrafficInput{JudgeBeforeTraffic: true, Released: true, ByController: true, Ready: "b"}, latest, TrafficUnchanged, "", ""},
		"a rollback during the hold":                      {TrafficInput{JudgeBeforeTraffic: true, Released: true, ByController: true, Ready: "b", HoldBefore: held("a", latest)}, pinned, TrafficPinned, latest, ""},
		"a repeated call":                                 {TrafficInput{JudgeBeforeTraffic: true, Released: true, Ready: "a", HoldInRequest: held("a", latest)}, pinned, TrafficPinned, latest, ""},
		"a forged hold":                                   {TrafficInput{JudgeBeforeTraffic: true, Released: true, Ready: "a", HoldInRequest: held("b", latest)}, pinned, TrafficUnchanged, "", ""},
		"a release of a manifest saved during a hold":     {TrafficInput{JudgeBeforeTraffic: true, Released: true, Ready: "a", HoldInRequest: held("x", latest)}, pinnedToX, TrafficPinned, latest, pinned},
		"no Revision is Ready":                            {TrafficInput{JudgeBeforeTraffic: true, Released: true}, latest, TrafficUnchanged, "", ""},
		"a split by names":                                {TrafficInput{JudgeBeforeTraffic: true, Released: true, Ready: "a"}, named, TrafficUnchanged, "", ""},
		"the setting is off":                              {TrafficInput{Released: true, Ready: "a"}, latest, TrafficUnchanged, "", ""},
		"no release":                                      {TrafficInput{JudgeBeforeTraffic: true, Ready: "a"}, latest, TrafficUnchanged, "", ""},
		"a release during the hold":                       {TrafficInput{JudgeBeforeTraffic: true, Released: true, Ready: "b", HoldBefore: held("a", latest)}, pinned, TrafficPinned, latest, ""},
		"a release during the hold, of the former split":  {TrafficInput{JudgeBeforeTraffic: true, Released: true, Ready: "b", HoldBefore: held("a", latest)}, latest, TrafficPinned, latest, pinned},
		"a release during the hold, of another split":     {TrafficInput{JudgeBeforeTraffic: true, Released: true, Ready: "b", HoldBefore: held("a", latest)}, canary, TrafficPinned, canary, canaryPins},
		"a release during the hold, of a split by names":  {TrafficInput{JudgeBeforeTraffic: true, Released: true, Ready: "b", HoldBefore: held("a", latest)}, named, TrafficRestored, "", ""},
		"a release during the hold, with the setting off": {TrafficInput{Released: true, Ready: "b", HoldBefore: held("a", latest)}, pinned, TrafficRestored, "", ""},
		"a sync of the former split":                      {TrafficInput{HoldBefore: held("a", latest), Ready: "b"}, latest, TrafficKept, "", pinned},
		"a replace without traffic":                       {TrafficInput{HoldBefore: held("a", latest), Ready: "b"}, "", TrafficKept, "", pinned},
		"a sync of another former split":                  {TrafficInput{HoldBefore: held("a", canary), Ready: "b"}, canary, TrafficKept, "", canaryPins},
		"the split of a person during the hold":           {TrafficInput{HoldBefore: held("a", latest), Ready: "b"}, canary, TrafficKept, "", ""},
		"the same split during the hold":                  {TrafficInput{HoldBefore: held("a", latest), Ready: "b"}, pinned, TrafficKept, "", ""},
		"a manifest saved during an earlier hold":         {TrafficInput{HoldBefore: held("a", latest), HoldInRequest: held("x", latest), Ready: "b"}, pinnedToX, TrafficKept, "", pinned},
		"a manifest saved during the hold":                {TrafficInput{HoldBefore: held("a", latest), HoldInRequest: held("a", latest), Ready: "b"}, pinned, TrafficKept, "", ""},
		"the controller ends the hold":                    {TrafficInput{HoldBefore: held("a", latest), Ready: "b", ByController: true}, latest, TrafficUnchanged, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.Service, tc.in.After = "web", trafficOf(t, tc.after)
			got := DecideTraffic(tc.in)
			if got.Outcome != tc.outcome || !knativetraffic.Same(got.Split, trafficOf(t, tc.split)) {
				t.Errorf("%s %v, want %s %s", got.Outcome, got.Split, tc.outcome, tc.split)
			}
			switch {
			case tc.former == "":
				if got.Held != nil {
					t.Errorf("held %+v", got.Held)
				}
			case got.Held == nil, got.Held.To != "a", !knativetraffic.Same(got.Held.Former, trafficOf(t, tc.former)):
				t.Errorf("held %+v, want former %s", got.Held, tc.former)
			}
		})
	}
}

// ready returns the Service with a Revision that is Ready.
func ready(u *unstructured.Unstructured, revision string) *unstructured.Unstructured {
	u = u.DeepCopy()
	_ = unstructured.SetNestedField(u.Object, revision, "status", "latestReadyRevisionName")
	return u
}

// splitOf returns spec.traffic as JSON.
func splitOf(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	traffic, _, _ := unstructured.NestedSlice(u.Object, "spec", "traffic")
	return string(marshal(t, traffic))
}

func withSplit(t *testing.T, u *unstructured.Unstructured, raw string) *unstructured.Unstructured {
	t.Helper()
	u = u.DeepCopy()
	var entries []any
	if err := json.Unmarshal([]byte(raw), &entries); err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedSlice(u.Object, entries, "spec", "traffic")
	return u
}

// A template is applied with a manifest that has neither traffic nor annotations of Breakwater.
func TestTheTrafficIsHeldWithARelease(t *testing.T) {
	setting := func(u *unstructured.Unstructured, value string) *unstructured.Unstructured {
		u = u.DeepCopy()
		u.SetAnnotations(map[string]string{v1alpha1.JudgeBeforeTrafficAnnotation: value})
		return u
	}
	created := admitKnative(t, nil, setting(withSplit(t, service("a:1", nil), latest), "true"), alice)
	if got := splitOf(t, created); got != latest || created.GetAnnotations()[v1alpha1.HoldAnnotation] != "" {
		t.Errorf("created with %s %v", got, created.GetAnnotations())
	}
	held := admitKnative(t, ready(created, "a"), setting(service("a:2", nil), "true"), alice)
	hold := v1alpha1.HoldOf(held.GetAnnotations())
	if got := splitOf(t, held); got != pinned || !hold.IsUntilJudged() || hold.Attempt != 2 {
		t.Fatalf("released with %s, hold %s", got, held.GetAnnotations()[v1alpha1.HoldAnnotation])
	}
	for name, tc := range map[string]struct {
		after       *unstructured.Unstructured
		want        string // spec.traffic
		heldAttempt int64  // 0 if it is not held
	}{
		"the manifest again":           {setting(withSplit(t, service("a:2", nil), latest), "true"), pinned, 2},
		"the hold is removed":          {withSplit(t, setting(held, "true"), pinned), pinned, 2},
		"another split":                {withSplit(t, held, named), named, 2},
		"the next release":             {setting(withSplit(t, service("a:3", nil), latest), "true"), pinned, 3},
		"the next, after another call": {withSplit(t, setting(service("a:3", nil), "true"), pinned), pinned, 3},
		"the next, without":            {withSplit(t, setting(service("a:3", nil), "false"), pinned), latest, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := admitKnative(t, ready(held, "b"), tc.after, alice)
			if s := splitOf(t, got); s != tc.want {
				t.Errorf("traffic %s, want %s", s, tc.want)
			}
			hold := v1alpha1.HoldOf(got.GetAnnotations())
			switch {
			case tc.heldAttempt == 0:
				if hold != nil {
					t.Errorf("held %+v", hold)
				}
			case !hold.IsUntilJudged(), hold.Attempt != tc.heldAttempt, hold.Traffic.To != "a", string(marshal(t, hold.Traffic.Former)) != latest:
				t.Errorf("held %s", got.GetAnnotations()[v1alpha1.HoldAnnotation])
			}
		})
	}
}

// The hold in the manifest has ended: Revision c is Ready and has the traffic.
func TestAManifestSavedDuringAHoldDoesNotPinTheTraffic(t *testing.T) {
	on := map[string]string{v1alpha1.JudgeBeforeTrafficAnnotation: "true"}
	created := admitKnative(t, nil, withSplit(t, service("a:1", nil), latest), alice)
	created.SetAnnotations(on)
	saved := admitKnative(t, ready(created, "a"), with(service("a:2", nil), on), alice)
	if got := splitOf(t, saved); got != pinned {
		t.Fatalf("saved with %s", got)
	}
	ended := ready(withSplit(t, saved, latest), "c")
	without := ended.GetAnnotations()
	delete(without, v1alpha1.HoldAnnotation)
	ended.SetAnnotations(without)
	template := func(image, setting string) *unstructured.Unstructured {
		u := with(saved, map[string]string{v1alpha1.HoldAnnotation: saved.GetAnnotations()[v1alpha1.HoldAnnotation], v1alpha1.JudgeBeforeTrafficAnnotation: setting})
		u.Object["spec"].(map[string]any)["template"] = service(image, nil).Object["spec"].(map[string]any)["template"]
		return u
	}
	for name, tc := range map[string]struct {
		after      *unstructured.Unstructured
		want, held string // spec.traffic, and the Revision of the hold
	}{
		"the same template":                {saved, latest, ""},
		"another template":                 {template("a:3", "true"), strings.ReplaceAll(pinned, `"a"`, `"c"`), "c"},
		"another, and the setting is off":  {template("a:3", "false"), latest, ""},
		"the same template, another split": {withSplit(t, saved, named), named, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := admitKnative(t, ended, tc.after, alice)
			if s := splitOf(t, got); s != tc.want {
				t.Errorf("traffic %s, want %s", s, tc.want)
			}
			held := ""
			if hold := v1alpha1.HoldOf(got.GetAnnotations()); hold != nil {
				held = hold.Traffic.To
			}
			if held != tc.held {
				t.Errorf("held at %q, want %q", held, tc.held)
			}
		})
	}
}

// with returns the Service with only these annotations.
func with(u *unstructured.Unstructured, annotations map[string]string) *unstructured.Unstructured {
	u = u.DeepCopy()
	u.SetAnnotations(annotations)
	return u
}

// The validating webhook denies it.
func TestADeniedReleaseDoesNotChangeTheHold(t *testing.T) {
	const hold = `{"attempt":1,"traffic":{"failed":["b"],"to":"a"}}`
	before := ready(withSplit(t, defaulted(service("a:1", nil)), latest), "a")
	before.SetLabels(map[string]string{v1alpha1.SuspendLabel: "1"})
	before.SetAnnotations(map[string]string{v1alpha1.JudgeBeforeTrafficAnnotation: "true", v1alpha1.HoldAnnotation: hold})
	after := before.DeepCopy()
	_ = unstructured.SetNestedMap(after.Object, service("a:2", nil).Object["spec"].(map[string]any)["template"].(map[string]any), "spec", "template")
	got := admitKnative(t, before, after, alice)
	if s := splitOf(t, got); s != latest || got.GetAnnotations()[v1alpha1.HoldAnnotation] != hold {
		t.Errorf("traffic %s, held %s", s, got.GetAnnotations()[v1alpha1.HoldAnnotation])
	}
}

// An error changes nothing: a hold goes on, and a Service without one is released as without the setting.
func TestWhereReleasesAreJudgedBeforeTheyGetTraffic(t *testing.T) {
	for name, tc := range map[string]struct {
		service, namespace  string
		unchanged, disabled bool
		hold                string
		err                 error
		want                bool
	}{
		"no setting":                             {},
		"of the namespace":                       {namespace: "true", want: true},
		"of the Service":                         {service: "true", want: true},
		"the Service precedes":                   {service: "false", namespace: "true"},
		"an invalid one":                         {service: "yes", namespace: "true", want: true},
		"the namespace is off":                   {namespace: "false"},
		"the namespace has none":                 {namespace: "yes"},
		"no release":                             {namespace: "true", unchanged: true},
		"holds are disabled":                     {namespace: "true", disabled: true},
		"the namespace is not read":              {namespace: "true", err: errors.New("too slow")},
		"it is not read during a hold":           {hold: `{"attempt":2,"untilJudged":true}`, err: errors.New("too slow"), want: true},
		"it is not read during one after a fail": {hold: `{"attempt":2}`, err: errors.New("too slow")},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := func(value string) map[string]string {
				if value == "" {
					return nil
				}
				return map[string]string{v1alpha1.JudgeBeforeTrafficAnnotation: value}
			}
			client := fake.NewSimpleClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: annotations(tc.namespace)}})
			if tc.err != nil {
				client.PrependReactor("get", "namespaces", func(clientgotesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			}
			h := newHandler()
			h.Namespaces = client.CoreV1()
			s := h.Settings()
			s.Blocking = !tc.disabled
			h.Settings = func() settings.Settings { return s }
			before := &workload.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Annotations: map[string]string{v1alpha1.HoldAnnotation: tc.hold}}}
			after := &workload.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Annotations: annotations(tc.service)}}
			if got := h.judgesBeforeTraffic(t.Context(), admission.Change{Old: before, New: after, TemplateChanged: !tc.unchanged}); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
		})
	}
}

func TestOtherKindsHaveNoTraffic(t *testing.T) {
	w := &workload.Workload{Kind: workload.Deployment}
	if got := newHandler().decideTraffic(t.Context(), admission.Change{Old: w, New: w, TemplateChanged: true}); got.Outcome != TrafficUnchanged {
		t.Errorf("%+v", got)
	}
}

// A freeze is a suspension by a person: no Revision has failed.
func TestARepairOfAFrozenServiceIsJudgedBeforeItGetsTraffic(t *testing.T) {
	const (
		untilJudged = `{"attempt":1,"untilJudged":true,"traffic":{"to":"a","former":` + latest + `}}`
		fail        = `{"attempt":1,"traffic":{"failed":["b"],"to":"a","former":` + latest + `}}`
	)
	for name, tc := range map[string]struct {
		setting, hold, before string
		want                  string // spec.traffic
		heldUntilJudged       bool
		byBypass              bool // the bypass has the traffic
	}{
		"frozen":                               {"true", "", latest, pinned, true, false},
		"frozen, with parts":                   {"true", "", canary, canaryPins, true, false},
		"frozen, split by names":               {"true", "", named, named, false, false},
		"frozen, the setting off":              {"false", "", latest, latest, false, false},
		"frozen while it is judged":            {"true", untilJudged, pinned, pinned, true, false},
		"frozen while it is judged, now off":   {"false", untilJudged, pinned, latest, false, false},
		"frozen while it is judged, now named": {"true", untilJudged, named, named, false, false},
		"failed, without a record":             {"true", `{"attempt":1}`, latest, latest, false, false},
		"unjudged":                             {"true", `{"attempt":1,"unjudged":true}`, latest, pinned, true, false},
		"failed":                               {"true", fail, `[{"percent":100,"revisionName":"a"}]`, `[{"percent":100,"revisionName":"a"}]`, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := ready(withSplit(t, defaulted(service("a:1", nil)), tc.before), "a")
			before.SetLabels(map[string]string{v1alpha1.SuspendLabel: "1"})
			annotations := map[string]string{v1alpha1.JudgeBeforeTrafficAnnotation: tc.setting, v1alpha1.AttemptAnnotation: "1", v1alpha1.VersionKey: "v"}
			if tc.hold != "" {
				annotations[v1alpha1.HoldAnnotation] = tc.hold
			}
			before.SetAnnotations(annotations)
			after := before.DeepCopy()
			_ = unstructured.SetNestedMap(after.Object, service("a:2", nil).Object["spec"].(map[string]any)["template"].(map[string]any), "spec", "template")
			after.SetLabels(map[string]string{v1alpha1.SuspendLabel: "1", v1alpha1.IgnoredSuspendLabel: "true"})
			got := admitKnative(t, before, after, alice)
			bypass, hold := v1alpha1.BypassOf(got.GetAnnotations()), v1alpha1.HoldOf(got.GetAnnotations())
			if s := splitOf(t, got); s != tc.want || bypass == nil || hold.IsUntilJudged() != tc.heldUntilJudged || (bypass.Traffic != nil) != tc.byBypass {
				t.Fatalf("traffic %s, want %s; %v", s, tc.want, got.GetAnnotations())
			}
			if tc.heldUntilJudged && (hold.Attempt != bypass.Attempt || hold.Traffic.To != "a") {
				t.Errorf("held %+v", hold)
			}
		})
	}
}

// Revision b failed and is the latest one that is Ready. The bypass annotation is removed while the first
// repair runs, and the second repair asks for the former traffic.
func TestAnotherRepairKeepsTheTrafficAtTheGoodRevision(t *testing.T) {
	const good = `[{"latestRevision":false,"percent":100,"revisionName":"a"}]`
	for _, setting := range []string{"true", "false"} {
		held := ready(withSplit(t, defaulted(service("a:2", nil)), good), "b")
		held.SetLabels(map[string]string{v1alpha1.SuspendLabel: "1"})
		held.SetAnnotations(map[string]string{v1alpha1.JudgeBeforeTrafficAnnotation: setting, v1alpha1.AttemptAnnotation: "2", v1alpha1.VersionKey: "v",
			v1alpha1.HoldAnnotation: `{"attempt":2,"freeze":"f","traffic":{"failed":["b"],"to":"a","former":` + latest + `}}`})
		repairs := func(before *unstructured.Unstructured, image string) *unstructured.Unstructured {
			after := withSplit(t, before, latest)
			_ = unstructured.SetNestedField(after.Object, service(image, nil).Object["spec"].(map[string]any)["template"].(map[string]any)["spec"], "spec", "template", "spec")
			after.SetLabels(map[string]string{v1alpha1.SuspendLabel: "1", v1alpha1.IgnoredSuspendLabel: "true"})
			return admitKnative(t, before, after, alice)
		}
		first := repairs(held, "a:3")
		removed := first.DeepCopy()
		unstructured.RemoveNestedField(removed.Object, "metadata", "annotations", v1alpha1.BypassAnnotation)
		second := repairs(admitKnative(t, first, removed, alice), "a:4")

		bypass := v1alpha1.BypassOf(second.GetAnnotations())
		if s := splitOf(t, second); s != good || bypass == nil || bypass.Attempt != v1alpha1.BypassOf(first.GetAnnotations()).Attempt+1 || bypass.Freeze != "f" || bypass.AnotherRepair || v1alpha1.HoldOf(second.GetAnnotations()) != nil {
			t.Fatalf("setting %s: traffic %s; %v", setting, s, second.GetAnnotations())
		}
		if diff := cmp.Diff(v1alpha1.BypassOf(first.GetAnnotations()).Traffic, bypass.Traffic); diff != "" {
			t.Errorf("setting %s: %s", setting, diff)
		}
	}
}

// Revision b failed and is the latest one that is Ready. A GitOps tool applies the repair, and then its
// manifest again at each sync.
func TestASyncDuringARepairGivesTheFailedRevisionNoTraffic(t *testing.T) {
	const good = `[{"latestRevision":false,"percent":100,"revisionName":"a"}]`
	held := ready(withSplit(t, defaulted(service("a:2", nil)), good), "b")
	held.SetLabels(map[string]string{v1alpha1.SuspendLabel: "1"})
	held.SetAnnotations(map[string]string{v1alpha1.AttemptAnnotation: "2", v1alpha1.VersionKey: strings.Repeat("0", 32),
		v1alpha1.HoldAnnotation: `{"attempt":2,"traffic":{"failed":["b"],"to":"a","former":` + latest + `}}`})
	repair := withSplit(t, held, latest)
	_ = unstructured.SetNestedField(repair.Object, service("a:3", nil).Object["spec"].(map[string]any)["template"].(map[string]any)["spec"], "spec", "template", "spec")
	repair.SetLabels(map[string]string{v1alpha1.SuspendLabel: "1", v1alpha1.IgnoredSuspendLabel: "true"})
	repaired := admitKnative(t, held, repair, alice)
	if got := decided(t, held, repaired); got.Outcome != suspend.Repair || splitOf(t, repaired) != good {
		t.Fatalf("the repair: %+v with traffic %s", got, splitOf(t, repaired))
	}
	for name, tc := range map[string]struct {
		split string
		want  suspend.Outcome
	}{
		"the manifest of the repair": {latest, suspend.Deny},
		"the failed Revision":        {`[{"revisionName":"b","percent":100}]`, suspend.Deny},
		"without a change":           {good, suspend.Admit},
		"another Revision by name":   {`[{"revisionName":"c","percent":100}]`, suspend.Admit},
	} {
		if got := decided(t, repaired, admitKnative(t, repaired, withSplit(t, repaired, tc.split), alice)); got.Outcome != tc.want {
			t.Errorf("%s: %+v, want %s", name, got, tc.want)
		}
	}
}

// Revision b failed, and its repair is held because it is unjudged: hold and bypass have the traffic. The setting
// isBlockingUp is turned off, and a release that is no repair is applied before the controller ends that hold.
func TestTheEndOfTheHoldOfAnUnjudgedRepairKeepsTheTraffic(t *testing.T) {
	const (
		good   = `[{"latestRevision":false,"percent":100,"revisionName":"a"}]`
		record = `"traffic":{"failed":["b"],"to":"a","former":` + latest + `}`
	)
	for name, tc := range map[string]struct {
		suspended, want string // the suspend label, and spec.traffic
	}{
		"during the suspension": {"1", good},
		"of a later freeze":     {"2", latest},
		"after the suspension":  {"", latest},
	} {
		h := newHandler()
		s := h.Settings()
		s.Blocking = false
		h.Settings = func() settings.Settings { return s }
		held := ready(withSplit(t, defaulted(service("a:3", nil)), good), "b")
		if tc.suspended != "" {
			held.SetLabels(map[string]string{v1alpha1.SuspendLabel: tc.suspended})
		}
		held.SetAnnotations(map[string]string{v1alpha1.AttemptAnnotation: "3", v1alpha1.VersionKey: strings.Repeat("0", 32),
			v1alpha1.BypassAnnotation: `{"kind":"repair","user":"alice","suspend":"1","attempt":3,` + record + `}`,
			v1alpha1.HoldAnnotation:   `{"attempt":3,"unjudged":true,` + record + `}`})
		after := held.DeepCopy()
		_ = unstructured.SetNestedField(after.Object, service("a:4", nil).Object["spec"].(map[string]any)["template"].(map[string]any)["spec"], "spec", "template", "spec")
		got := admitKnativeBy(t, h, held, after, alice)
		if split := splitOf(t, got); split != tc.want || v1alpha1.HoldOf(got.GetAnnotations()) != nil {
			t.Errorf("%s: traffic %s, want %s; %v", name, split, tc.want, got.GetAnnotations())
		}
	}
}

// decided returns the decision of the validating webhook about an update by alice.
func decided(t *testing.T, before, after *unstructured.Unstructured) suspend.Decision {
	t.Helper()
	c, err := admission.ReadChange(workload.KnativeService, &admissionv1.AdmissionRequest{
		Operation: admissionv1.Update, UserInfo: authenticationv1.UserInfo{Username: alice},
		OldObject: runtime.RawExtension{Raw: marshal(t, before)}, Object: runtime.RawExtension{Raw: marshal(t, after)},
	})
	if err != nil {
		t.Fatal(err)
	}
	in := suspend.InputOf(c)
	in.Blocking = true
	return suspend.Confirm(suspend.Decide(in), in, suspend.AddedBypass(c) != nil)
}

// A user may write the bypass annotation, which asks for a repair as the label does. The traffic in it gives
// none to the failed Revision.
func TestABypassInTheRequestDoesNotGiveTrafficToAFailedRevision(t *testing.T) {
	before := ready(withSplit(t, defaulted(service("a:2", nil)), `[{"latestRevision":false,"percent":100,"revisionName":"a"}]`), "b")
	before.SetLabels(map[string]string{v1alpha1.SuspendLabel: "1"})
	version := strings.Repeat("0", 32)
	before.SetAnnotations(map[string]string{v1alpha1.AttemptAnnotation: "2", v1alpha1.VersionKey: version,
		v1alpha1.HoldAnnotation: `{"attempt":2,"traffic":{"failed":["b"],"to":"a","former":` + latest + `}}`})
	for name, forged := range map[string]string{"none": "", "another": `,"traffic":{"to":"b","former":[{"revisionName":"b","percent":100}]}`} {
		after := withSplit(t, before, latest)
		_ = unstructured.SetNestedField(after.Object, "x", "spec", "template", "metadata", "annotations", "a")
		annotations := after.GetAnnotations()
		annotations[v1alpha1.BypassAnnotation] = `{"kind":"repair","user":"alice","suspend":"1","attempt":3` + forged + `}`
		after.SetAnnotations(annotations)
		got := admitKnative(t, before, after, alice)
		bypass := v1alpha1.BypassOf(got.GetAnnotations())
		if s := splitOf(t, got); s != splitOf(t, before) || bypass.Traffic == nil || bypass.Traffic.To != "a" || len(bypass.Traffic.Failed) != 1 {
			t.Errorf("%s: traffic %s; %+v", name, s, bypass.Traffic)
		}
	}
}
