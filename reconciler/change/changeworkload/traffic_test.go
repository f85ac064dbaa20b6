package changeworkload

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// deployment is the Deployment of Revision web-<n>, created n minutes after t0, with a release; none
// if the version is empty.
func deployment(n int, version string, attempt int64) *workload.Workload {
	d := &workload.Workload{Kind: workload.Deployment, ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("web-%d-deployment", n), CreationTimestamp: metav1.NewTime(t0.Add(time.Duration(n) * time.Minute)),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "serving.knative.dev/v1", Kind: "Revision", Name: fmt.Sprintf("web-%d", n), Controller: new(true)}},
	}}
	if version != "" {
		d.Annotations = map[string]string{v1alpha1.VersionKey: version, v1alpha1.AttemptAnnotation: strconv.FormatInt(attempt, 10)}
	}
	return d
}

func TestTheGoodRevisionIsTheLastOneThatSucceeded(t *testing.T) {
	ended := func(version string, attempt int64, phase v1alpha1.ReleasePhase) *v1alpha1.ChangeWorkload {
		c := &v1alpha1.ChangeWorkload{Spec: v1alpha1.ChangeWorkloadSpec{Reversion: version, Attempt: attempt}}
		c.Status.Phase, c.Status.Counts.Pods = phase, 1
		return c
	}
	saved := func(version string, attempt int64, minutes int) savedtemplate.Saved {
		return savedtemplate.Saved{Release: v1alpha1.Release{Version: version, Attempt: attempt}, Created: metav1.NewTime(t0.Add(time.Duration(minutes) * time.Minute))}
	}
	const success, suspend = v1alpha1.ReleaseSuccess, v1alpha1.ReleaseSuspend
	failed := v1alpha1.Release{Version: "b", Attempt: 2}
	all := func(d ...*workload.Workload) []*workload.Workload { return d }
	releases := func(c ...*v1alpha1.ChangeWorkload) History { return History{Releases: c} }
	templates := func(k ...savedtemplate.Saved) History { return History{Saved: k} }
	withoutPods := ended("a", 1, success)
	withoutPods.Status.Counts.Pods = 0
	for name, tc := range map[string]struct {
		deployments []*workload.Workload
		history     History
		want        string
	}{
		"the version before":                        {all(deployment(1, "a", 1), deployment(2, "b", 2)), releases(ended("a", 1, success), ended("b", 2, suspend)), "web-1"},
		"none succeeded":                            {all(deployment(1, "a", 1), deployment(2, "b", 2)), releases(ended("a", 1, suspend)), ""},
		"it succeeded without a pod":                {all(deployment(1, "a", 1), deployment(2, "b", 2)), releases(withoutPods), ""},
		"another attempt of the version":            {all(deployment(1, "a", 1), deployment(2, "b", 2)), releases(ended("a", 3, success)), ""},
		"it was scaled":                             {all(deployment(1, "a", 1), deployment(2, "a", 1), deployment(3, "b", 2)), releases(ended("a", 1, success)), "web-2"},
		"only its template is left":                 {all(deployment(1, "a", 1), deployment(2, "b", 2)), templates(saved("a", 1, 1), saved("b", 2, 2)), "web-1"},
		"its template succeeded at another attempt": {all(deployment(1, "a", 1), deployment(2, "b", 2)), templates(saved("a", 3, 1)), ""},
		"an earlier attempt of the failed version":  {all(deployment(1, "b", 1), deployment(2, "b", 2)), templates(saved("b", 1, 1)), ""},
		"its template is not deleted yet": {all(deployment(0, "z", 0), deployment(1, "a", 1), deployment(2, "b", 2)),
			History{[]savedtemplate.Saved{saved("z", 0, 0), saved("a", 1, 1)}, []*v1alpha1.ChangeWorkload{ended("a", 1, suspend)}}, "web-0"},
		"the baseline":                    {all(deployment(1, "", 0), deployment(2, "b", 2)), templates(saved("z", 0, 1)), "web-1"},
		"a baseline that was never Ready": {all(deployment(1, "", 0), deployment(2, "b", 2)), releases(ended("z", 0, success)), ""},
		"the webhook did not see it":      {all(deployment(1, "", 0), deployment(3, "", 0), deployment(4, "b", 2)), templates(saved("z", 0, 2)), "web-1"},
		"a template without a baseline":   {all(deployment(1, "", 0), deployment(2, "b", 2)), templates(saved("a", 1, 2)), ""},
		"the failed Revision is deleted":  {all(deployment(1, "a", 1)), releases(ended("a", 1, success)), "web-1"},
		"the good Revision is deleted":    {all(deployment(2, "b", 2)), templates(saved("a", 1, 1)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := goodRevision(failed, tc.deployments, tc.history); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestTheRevisionsOfARelease(t *testing.T) {
	release := v1alpha1.Release{Version: "b", Attempt: 2}
	got := revisionsOf(release, []*workload.Workload{deployment(3, "b", 2), deployment(0, "", 0), deployment(1, "b", 1), deployment(2, "b", 2), deployment(4, "c", 2)})
	if diff := cmp.Diff([]string{"web-2", "web-3"}, got); diff != "" {
		t.Error(diff)
	}
	if got := revisionsOf(release, nil); len(got) > 0 {
		t.Errorf("%v", got)
	}
}

func TestTheReplicaSetsOfTheLatestRevision(t *testing.T) {
	var deployments []*workload.Workload
	var sets []*appsv1.ReplicaSet
	for n := range 3 {
		d := deployment(n, "b", 2)
		d.UID = types.UID(d.Name)
		deployments = append(deployments, d)
		sets = append(sets, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: d.Name + "-x", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, d.Kind.GroupVersionKind)}}})
	}
	changed := sets[1].DeepCopy()
	changed.Name = "web-1-deployment-y"
	for name, tc := range map[string]struct {
		revision string
		sets     []*appsv1.ReplicaSet
		want     []string
	}{
		"it is cached":                   {"web-1", sets, []string{"web-1-deployment-x"}},
		"Serving changed its Deployment": {"web-1", append(slices.Clone(sets), changed), []string{"web-1-deployment-x", "web-1-deployment-y"}},
		"another one is":                 {"web-1", sets[2:], nil},
		"it is of another release":       {"web-3", sets, nil},
		"no Revision was created":        {"", sets, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, replicaSetsOf(tc.revision, deployments, tc.sets)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A fail and its end leave the Service as it was, except for what a person changed.
func TestAHoldOfAKnativeServiceMovesItsTraffic(t *testing.T) {
	for name, tc := range map[string]struct {
		before    string
		revisions Revisions
		during    string // by a person, while the Service is suspended
		held, end string
	}{
		"all of it":        {`[{"latestRevision":true,"percent":100}]`, Revisions{[]string{"b"}, "a"}, "", `[{"latestRevision":false,"percent":100,"revisionName":"a"}]`, `[{"latestRevision":true,"percent":100}]`},
		"no good Revision": {`[{"latestRevision":true,"percent":100}]`, Revisions{[]string{"b"}, ""}, "", `[{"latestRevision":true,"percent":100}]`, `[{"latestRevision":true,"percent":100}]`},
		"no traffic":       {`[{"revisionName":"a","percent":100}]`, Revisions{[]string{"b"}, "a"}, "", `[{"percent":100,"revisionName":"a"}]`, `[{"percent":100,"revisionName":"a"}]`},
		"changed by a person": {`[{"latestRevision":true,"percent":100}]`, Revisions{[]string{"b"}, "a"}, `[{"revisionName":"x","percent":100}]`,
			`[{"latestRevision":false,"percent":100,"revisionName":"a"}]`, `[{"percent":100,"revisionName":"x"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			c := attempt(2)
			raw := fmt.Appendf(nil, `{"metadata":{"name":"web","resourceVersion":"1","uid":"u","labels":{%q:"v"},"annotations":{%[1]q:"v",%q:"2"}},"spec":{"template":{},"traffic":%s}}`,
				v1alpha1.VersionKey, v1alpha1.AttemptAnnotation, tc.before)
			raw = patchKnative(t, raw, ActionSuspend, Input{ChangeWorkload: c, Now: t0, Revisions: tc.revisions})
			checkTraffic(t, raw, tc.held)
			held := readKnative(t, raw)
			record := v1alpha1.HoldOf(held.Annotations).Traffic
			if record == nil || len(record.Failed) != 1 || held.Labels[v1alpha1.SuspendLabel] == "" {
				t.Fatalf("held with %+v", record)
			}
			if tc.during != "" {
				raw = applyTo(t, raw, fmt.Appendf(nil, `[{"op":"add","path":"/spec/traffic","value":%s}]`, tc.during))
			}
			raw = patchKnative(t, raw, ActionResume, Input{ChangeWorkload: c})
			checkTraffic(t, raw, tc.end)
			if after := readKnative(t, raw); after.Annotations[v1alpha1.HoldAnnotation] != "" || after.Labels[v1alpha1.SuspendLabel] != "" {
				t.Errorf("held with %v %v", after.Annotations, after.Labels)
			}
		})
	}
}

// A repair that fails, too, is in the same suspension: its end restores the traffic before the first.
func TestTheTrafficBeforeAFailedRepairIsRestored(t *testing.T) {
	bypass := `{"kind":"repair","suspend":"1","attempt":2,"traffic":{"failed":["b"],"to":"a","former":[{"latestRevision":true,"percent":100}]}}`
	raw := fmt.Appendf(nil, `{"metadata":{"name":"web","resourceVersion":"1","uid":"u","labels":{%q:"v",%q:"1"},"annotations":{%[1]q:"v",%[3]q:"2",%[4]q:%[5]q}},
		"spec":{"template":{},"traffic":[{"revisionName":"a","latestRevision":false,"percent":100}]}}`,
		v1alpha1.VersionKey, v1alpha1.SuspendLabel, v1alpha1.AttemptAnnotation, v1alpha1.BypassAnnotation, bypass)
	c := attempt(2)
	raw = patchKnative(t, raw, ActionSuspend, Input{ChangeWorkload: c, Now: t0, Revisions: Revisions{Own: []string{"c"}, Good: "a"}})
	want := &v1alpha1.HeldTraffic{Failed: []string{"b", "c"}, To: "a", Former: []map[string]any{{"latestRevision": true, "percent": 100.0}}}
	if diff := cmp.Diff(want, v1alpha1.HoldOf(readKnative(t, raw).Annotations).Traffic); diff != "" {
		t.Error(diff)
	}
	checkTraffic(t, patchKnative(t, raw, ActionResume, Input{ChangeWorkload: c}), `[{"latestRevision":true,"percent":100}]`)
}

// Revision c was released by name, and failed; the share of d moved in an earlier hold of the suspension.
func TestAFailedRevisionThatTheTrafficNamedGetsNoneWithoutAPerson(t *testing.T) {
	const former = `[{"revisionName":"c","percent":20},{"revisionName":"d","percent":10},{"latestRevision":true,"percent":30},{"revisionName":"a","percent":40}]`
	const traffic = `"traffic":{"failed":["c","d"],"to":"a","former":` + former + `}`
	bypass := func(kind string) string {
		return fmt.Sprintf(`%q:%q`, v1alpha1.BypassAnnotation, fmt.Sprintf(`{"kind":%q,"suspend":"1","attempt":2,%s}`, kind, traffic))
	}
	hold := fmt.Sprintf(`%q:%q`, v1alpha1.HoldAnnotation, `{"attempt":2,`+traffic+`}`)
	for name, tc := range map[string]struct {
		record string
		own    []string // the Revisions of the release that succeeds
		want   string
	}{
		"a rollback":                     {bypass("rollback"), []string{"e"}, `[{"latestRevision":true,"percent":30},{"percent":70,"revisionName":"a"}]`},
		"a repair":                       {bypass("repair"), []string{"e"}, `[{"latestRevision":true,"percent":30},{"percent":70,"revisionName":"a"}]`},
		"the fail of c is overruled":     {hold, []string{"c"}, `[{"percent":20,"revisionName":"c"},{"latestRevision":true,"percent":30},{"percent":50,"revisionName":"a"}]`},
		"those of c and d are overruled": {hold, []string{"c", "d"}, `[{"percent":20,"revisionName":"c"},{"percent":10,"revisionName":"d"},{"latestRevision":true,"percent":30},{"percent":40,"revisionName":"a"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			raw := fmt.Appendf(nil, `{"metadata":{"name":"web","resourceVersion":"1","uid":"u","labels":{%q:"v",%q:"1"},"annotations":{%[1]q:"v",%[3]q:"2",%[4]s}},
				"spec":{"template":{},"traffic":[{"revisionName":"a","percent":100}]}}`, v1alpha1.VersionKey, v1alpha1.SuspendLabel, v1alpha1.AttemptAnnotation, tc.record)
			raw = patchKnative(t, raw, ActionResume, Input{ChangeWorkload: attempt(2), Revisions: Revisions{Own: tc.own}})
			checkTraffic(t, raw, tc.want)
		})
	}
}

// A change of scale creates another Revision of the failed template.
func TestAFurtherRevisionOfAFailedReleaseIsHeldToo(t *testing.T) {
	held := func(names ...string) func(*Input) {
		return func(in *Input) {
			in.Workload.Suspend, in.Workload.KnativeService = "1", true
			in.Workload.Hold = &v1alpha1.Hold{Attempt: 2, Traffic: &v1alpha1.HeldTraffic{Failed: names, To: "a"}}
			in.Revisions = Revisions{Own: []string{"b", "c"}, Good: "a"}
		}
	}
	for name, tc := range map[string]struct {
		in   Input
		want Action
	}{
		"a further one":     {release(1, judged(1, "fail"), held("b")), ActionMoveTraffic},
		"all are held":      {release(1, judged(1, "fail"), held("b", "c")), ActionNone},
		"blocking is off":   {release(1, judged(1, "fail"), held("b"), func(in *Input) { in.Settings.Blocking = false }), ActionNone},
		"not suspended yet": {release(1, judged(1, "fail"), func(in *Input) { in.Revisions.Own = []string{"b"} }), ActionSuspend},
	} {
		if got := Decide(tc.in).Action; got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}

	hold := `{"attempt":2,"freeze":"f","traffic":{"failed":["b"],"to":"a","former":[{"latestRevision":true,"percent":100}]}}`
	raw := fmt.Appendf(nil, `{"metadata":{"name":"web","resourceVersion":"1","uid":"u","labels":{%q:"v",%q:"1"},"annotations":{%[1]q:"v",%[3]q:"2",%[4]q:%[5]q}},
		"spec":{"template":{},"traffic":[{"revisionName":"a","percent":60},{"revisionName":"c","percent":40}]}}`,
		v1alpha1.VersionKey, v1alpha1.SuspendLabel, v1alpha1.AttemptAnnotation, v1alpha1.HoldAnnotation, hold)
	raw = patchKnative(t, raw, ActionMoveTraffic, Input{ChangeWorkload: attempt(2), Revisions: Revisions{Own: []string{"b", "c"}, Good: "a"}})
	checkTraffic(t, raw, `[{"percent":100,"revisionName":"a"}]`)
	after := v1alpha1.HoldOf(readKnative(t, raw).Annotations)
	if after.Traffic.Former[0]["latestRevision"] != true || !slices.Equal(after.Traffic.Failed, []string{"b", "c"}) || after.Freeze != "f" || after.Attempt != 2 {
		t.Errorf("hold %+v with %+v", after, after.Traffic)
	}
}

func TestConditionHeldSaysWhereTheTrafficIs(t *testing.T) {
	held := func(to string) *v1alpha1.Hold { return &v1alpha1.Hold{Traffic: &v1alpha1.HeldTraffic{To: to}} }
	for name, tc := range map[string]struct {
		hold *v1alpha1.Hold
		good string
		want string
	}{
		"it will be moved": {nil, "a", "at Revision a"},
		"it was moved":     {held("a"), "x", "at Revision a"},
		"it was not moved": {held(""), "x", "is not changed"},
		"it will stay":     {nil, "", "is not changed"},
	} {
		in := Input{ChangeWorkload: attempt(2), Workload: Workload{KnativeService: true, Hold: tc.hold}, Revisions: Revisions{Good: tc.good}}
		if got := holdConsequence(in); !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func readKnative(t *testing.T, raw []byte) *workload.Workload {
	t.Helper()
	w, err := workload.Read(workload.KnativeService, raw)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func patchKnative(t *testing.T, raw []byte, action Action, in Input) []byte {
	t.Helper()
	patch, err := patchIfUnchanged(readKnative(t, raw), action, in)
	if err != nil {
		t.Fatal(err)
	}
	return applyTo(t, raw, patch)
}

func applyTo(t *testing.T, raw, patch []byte) []byte {
	t.Helper()
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = decoded.Apply(raw); err != nil {
		t.Fatalf("apply %s: %v", patch, err)
	}
	return raw
}

func checkTraffic(t *testing.T, raw []byte, want string) {
	t.Helper()
	got, err := json.Marshal(readKnative(t, raw).Traffic)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("traffic %s, want %s", got, want)
	}
}
