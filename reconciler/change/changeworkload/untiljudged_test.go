package changeworkload

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/knativetraffic"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// untilJudged: the traffic of the Service is at Revision a.
func untilJudged(in *Input) {
	in.Workload.KnativeService, in.JudgeBeforeTraffic = true, true
	in.Workload.Hold = &v1alpha1.Hold{Attempt: 2, UntilJudged: true, Traffic: &v1alpha1.HeldTraffic{To: "a"}}
}

// nothingHeld: the setting is on, but there is no hold.
func nothingHeld(in *Input) { in.Workload.KnativeService, in.JudgeBeforeTraffic = true, true }

func settingOff(in *Input) { in.JudgeBeforeTraffic = false }

// repairsFailed: the release repairs a Service whose failed Revision lost its share to a Revision; to none if the
// name is empty.
func repairsFailed(to string) func(*Input) {
	return func(in *Input) {
		repairs(in)
		in.Workload.KnativeService, in.Workload.Bypass.Traffic = true, &v1alpha1.HeldTraffic{Failed: []string{"b"}, To: to}
		in.Workload.Traffic, in.Revisions.Own = knativetraffic.Split{{"revisionName": "a", "percent": int64(100)}}, []string{"c"}
	}
}

// sends: spec.traffic gives a Revision some of the share of Revision a; the latest if the name is empty.
func sends(percent int64, to string) func(*Input) {
	return func(in *Input) {
		in.Workload.Traffic = knativetraffic.Split{{"revisionName": "a", "percent": 100 - percent}, {"revisionName": to, "percent": percent}}
	}
}

func frozen(in *Input) { in.Workload.Suspend = "holidays" }

// of2 makes the newest ChangePod one of two pods, of which the other has no verdict.
func of2(in *Input) {
	c := in.ChangePods[len(in.ChangePods)-1]
	c.Status.PodResults = []v1alpha1.PodSummary{{Pod: c.Spec.PodInfos[0].Pod, Verdict: "pass"}}
	c.Status.Verdicts, c.Status.Phase = nil, ""
	c.Spec.PodInfos = append(c.Spec.PodInfos, summary(9))
}

func TestTheTrafficIsHeldUntilTheFirstBatchPassed(t *testing.T) {
	const held, notSuspended = v1alpha1.ReasonTrafficUntilJudged, v1alpha1.ReasonNotSuspended
	for name, tc := range map[string]struct {
		in     Input
		action Action
		phase  v1alpha1.ReleasePhase
		reason string // of condition Held
		detail string // part of its message
	}{
		"no pod is Ready":                    {release(2, untilJudged), ActionNone, v1alpha1.ReleaseRunning, held, "its share is at Revision a"},
		"no pod, for hours":                  {release(2, untilJudged, after(25*time.Hour)), ActionNone, v1alpha1.ReleaseFailed, held, "at Revision a"},
		"the first batch is checked":         {release(2, untilJudged, finished(1, 1), judged(1, "")), ActionNone, v1alpha1.ReleaseRunning, held, "at Revision a"},
		"it passed":                          {release(2, untilJudged, finished(1, 1), judged(1, "pass")), ActionResume, v1alpha1.ReleaseRunning, notSuspended, ""},
		"it passed, its pod is deleted":      {release(2, untilJudged, judged(1, "pass")), ActionResume, v1alpha1.ReleaseRunning, notSuspended, ""},
		"a person passed it":                 {release(2, untilJudged, finished(1, 1), judged(1, ""), person("pass")), ActionResume, v1alpha1.ReleaseRunning, notSuspended, ""},
		"one of its two pods passed":         {release(2, untilJudged, finished(1, 1), judged(1, ""), of2), ActionNone, v1alpha1.ReleaseRunning, held, ""},
		"only a later one passed":            {release(2, untilJudged, finished(1, 2), judged(2, "pass"), judged(1, "")), ActionNone, v1alpha1.ReleaseRunning, held, ""},
		"it passed, and a later one waits":   {release(2, untilJudged, finished(1, 2), judged(2, ""), judged(1, "pass")), ActionResume, v1alpha1.ReleaseRunning, notSuspended, ""},
		"all passed":                         {release(1, untilJudged, complete1, finished(1, 1), judged(1, "pass")), ActionResume, v1alpha1.ReleaseSuccess, notSuspended, ""},
		"it failed":                          {release(2, untilJudged, finished(1, 1), judged(1, "fail")), ActionSuspend, v1alpha1.ReleaseSuspend, v1alpha1.ReasonSuspended, "is at Revision a"},
		"it is unjudged, which passes":       {release(2, untilJudged, finished(1, 1), judged(1, "done")), ActionResume, v1alpha1.ReleaseRunning, notSuspended, ""},
		"it is unjudged, which waits":        {release(2, untilJudged, noVerdict(v1alpha1.NoVerdictHold), finished(1, 1), judged(1, "done")), ActionNone, v1alpha1.ReleaseRunning, held, ""},
		"it is unjudged, which fails":        {release(2, untilJudged, noVerdict(v1alpha1.NoVerdictFail), finished(1, 1), judged(1, "done")), ActionSuspend, v1alpha1.ReleaseSuspend, v1alpha1.ReasonSuspended, ""},
		"scaled to zero":                     {release(1, untilJudged, complete1), ActionNone, v1alpha1.ReleaseRunning, held, "at Revision a"},
		"the setting is off":                 {release(2, untilJudged, settingOff), ActionResume, v1alpha1.ReleaseRunning, notSuspended, ""},
		"holds are disabled":                 {release(2, untilJudged, notBlocking), ActionResume, v1alpha1.ReleaseRunning, notSuspended, ""},
		"holds are disabled, and it failed":  {release(2, untilJudged, notBlocking, finished(1, 1), judged(1, "fail")), ActionResume, v1alpha1.ReleaseSuspend, v1alpha1.ReasonBlockingDisabled, ""},
		"a person suspended the Service":     {release(2, untilJudged, frozen), ActionNone, v1alpha1.ReleaseRunning, held, ""},
		"a newer release has the hold":       {release(2, untilJudged, newer), ActionNone, v1alpha1.ReleaseFailed, notSuspended, ""},
		"there was nothing to hold":          {release(2, nothingHeld), ActionNone, v1alpha1.ReleaseRunning, notSuspended, "but the traffic is not held"},
		"blocking began during the release":  {release(2, nothingHeld), ActionNone, v1alpha1.ReleaseRunning, notSuspended, "(7) OpsConfigInfo isBlockingUp was off, or shadow was on"},
		"nothing to hold, and it passed":     {release(2, nothingHeld, finished(1, 1), judged(1, "pass")), ActionNone, v1alpha1.ReleaseRunning, notSuspended, ""},
		"nothing to hold, and it failed":     {release(2, nothingHeld, finished(1, 1), judged(1, "fail")), ActionSuspend, v1alpha1.ReleaseSuspend, v1alpha1.ReasonSuspended, ""},
		"a repair":                           {release(2, nothingHeld, repairsFailed("a")), ActionNone, v1alpha1.ReleaseRunning, held, "only after a repair or a rollback succeeded; its share is at Revision a"},
		"a repair, with the setting off":     {release(2, nothingHeld, settingOff, repairsFailed("a")), ActionNone, v1alpha1.ReleaseRunning, held, "its share is at Revision a"},
		"a repair, holds are disabled":       {release(2, nothingHeld, notBlocking, repairsFailed("a")), ActionNone, v1alpha1.ReleaseRunning, held, "its share is at Revision a"},
		"a repair whose first batch passed":  {release(2, nothingHeld, repairsFailed("a"), finished(1, 1), judged(1, "pass")), ActionNone, v1alpha1.ReleaseRunning, held, "its share is at Revision a"},
		"a repair that timed out":            {release(2, nothingHeld, repairsFailed("a"), after(25*time.Hour)), ActionNone, v1alpha1.ReleaseFailed, held, "its share is at Revision a"},
		"a repair that succeeded":            {release(1, nothingHeld, repairsFailed("a"), complete1, finished(1, 1), judged(1, "pass")), ActionResume, v1alpha1.ReleaseSuccess, notSuspended, ""},
		"a repair that failed":               {release(2, nothingHeld, repairsFailed("a"), finished(1, 1), judged(1, "fail")), ActionSuspend, v1alpha1.ReleaseSuspend, v1alpha1.ReasonSuspended, ""},
		"a repair, no traffic was moved":     {release(2, nothingHeld, repairsFailed("")), ActionNone, v1alpha1.ReleaseRunning, notSuspended, "but the traffic is not held"},
		"a repair, all at the latest":        {release(2, nothingHeld, settingOff, repairsFailed("a"), sends(100, "")), ActionNone, v1alpha1.ReleaseRunning, notSuspended, ""},
		"a repair, a part at the latest":     {release(2, nothingHeld, settingOff, repairsFailed("a"), sends(10, "")), ActionNone, v1alpha1.ReleaseRunning, notSuspended, ""},
		"a repair, a part by its name":       {release(2, nothingHeld, settingOff, repairsFailed("a"), sends(10, "c")), ActionNone, v1alpha1.ReleaseRunning, notSuspended, ""},
		"a repair, all at another Revision":  {release(2, nothingHeld, settingOff, repairsFailed("a"), sends(100, "x")), ActionNone, v1alpha1.ReleaseRunning, notSuspended, ""},
		"a repair, a part at another":        {release(2, nothingHeld, settingOff, repairsFailed("a"), sends(10, "x")), ActionNone, v1alpha1.ReleaseRunning, held, "its share is at Revision a"},
		"a release that is judged otherwise": {release(2, nothingHeld, settingOff), ActionNone, v1alpha1.ReleaseRunning, notSuspended, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(tc.in)
			if d.Action != tc.action || d.Phase != tc.phase {
				t.Errorf("%q in phase %q, want %q in %q", d.Action, d.Phase, tc.action, tc.phase)
			}
			cond := derive(tc.in, d).Status.GetCondition(v1alpha1.ReleaseHeld)
			if cond.Reason != tc.reason || !strings.Contains(cond.Message, tc.detail) || tc.detail == "" && tc.reason == notSuspended && cond.Message != "" {
				t.Errorf("Held is %s: %q, want %s with %q", cond.Reason, cond.Message, tc.reason, tc.detail)
			}
			if want := tc.reason == v1alpha1.ReasonSuspended; (cond.Status == corev1.ConditionTrue) != want {
				t.Errorf("Held is %s", cond.Status)
			}
		})
	}
}

// A change of scale creates a further Revision during the hold. The share goes to the latest one.
func TestTheTrafficIsHeldUntilTheLatestRevisionPassed(t *testing.T) {
	type options []func(*Input)
	earlier, further := inBatch("web-00001", 1, "pass"), latest("web-00002")
	for name, tc := range map[string]struct {
		options options
		want    Action
	}{
		"no other was created":                 {options{earlier, latest("web-00001")}, ActionResume},
		"its pods are gone":                    {options{earlier, further}, ActionNone},
		"its pod is Ready":                     {options{earlier, further, scaledUp("web-00002", 2, 0, true)}, ActionNone},
		"its pod is checked":                   {options{earlier, further, inBatch("web-00002", 2, "")}, ActionNone},
		"its first batch passed":               {options{earlier, further, inBatch("web-00002", 2, "pass"), inBatch("web-00002", 3, "")}, ActionResume},
		"only a later one passed":              {options{earlier, further, inBatch("web-00002", 2, ""), inBatch("web-00002", 3, "pass")}, ActionNone},
		"it passed, and the earlier one waits": {options{inBatch("web-00001", 1, ""), further, inBatch("web-00002", 2, "pass")}, ActionResume},
		"a newer one replaced it":              {options{earlier, latest("web-00003"), inBatch("web-00003", 2, "pass")}, ActionResume},
		"its ReplicaSet is not cached":         {options{earlier}, ActionNone},
		"the setting is off":                   {options{earlier, further, settingOff}, ActionResume},
	} {
		t.Run(name, func(t *testing.T) {
			in := release(2, append(options{untilJudged}, tc.options...)...)
			if d := Decide(in); d.Action != tc.want {
				t.Errorf("%q (%s), want %q", d.Action, d.Detail, tc.want)
			}
		})
	}
}

// A hold that ended does not begin again with a further Revision, so Held gives no causes.
func TestAFurtherRevisionAfterTheHoldIsNoMissingHold(t *testing.T) {
	in := release(2, nothingHeld, inBatch("web-00001", 1, "pass"), latest("web-00002"))
	if cond := derive(in, Decide(in)).Status.GetCondition(v1alpha1.ReleaseHeld); cond.Message != "" {
		t.Errorf("Held is %s: %q", cond.Reason, cond.Message)
	}
}

// A request to the Service does not start a pod of a Revision without traffic.
func TestAHeldRevisionThatScaledToZeroIsStartedByItsTag(t *testing.T) {
	scales := func(in *Input) { in.Workload.KnativeService = true }
	for want, in := range map[string]Input{
		"when a request to the address of its tag, or": release(1, untilJudged, complete1),
		"when a request, or":                           release(1, scales, complete1),
	} {
		if got := Decide(in); got.Reason != v1alpha1.ReasonScaledToZero || !strings.Contains(got.Detail, want) {
			t.Errorf("%s: %q, want %q", got.Reason, got.Detail, want)
		}
	}
}

// A verdict and its end leave the Service as it was, except for what a person changed.
func TestAHoldUntilJudgedEndsWithTheFormerTraffic(t *testing.T) {
	const (
		latest = `[{"latestRevision":true,"percent":100}]`
		pinned = `[{"latestRevision":true,"percent":0,"tag":"unjudged"},{"latestRevision":false,"percent":100,"revisionName":"a"}]`
		canary = `[{"latestRevision":true,"percent":10,"tag":"unjudged"},{"percent":90,"revisionName":"a"}]`
		moved  = `[{"latestRevision":true,"percent":0,"tag":"unjudged"},{"percent":100,"revisionName":"a"}]`
		named  = `[{"percent":100,"revisionName":"x"}]`
	)
	for name, tc := range map[string]struct {
		traffic string // during the hold
		failed  string // spec.traffic after a fail
		end     string // of the suspension
		passed  string // spec.traffic after a pass
	}{
		"as it was held":       {pinned, pinned, latest, latest},
		"a canary of a person": {canary, moved, canary, canary},
		"by names":             {named, named, named, named},
		"the former split, which the webhook did not see": {latest, `[{"latestRevision":false,"percent":100,"revisionName":"a"}]`, latest, latest},
	} {
		t.Run(name, func(t *testing.T) {
			hold := `{"attempt":2,"untilJudged":true,"traffic":{"to":"a","former":` + latest + `}}`
			raw := fmt.Appendf(nil, `{"metadata":{"name":"web","resourceVersion":"1","uid":"u","labels":{%q:"v"},"annotations":{%[1]q:"v",%q:"2",%q:%q}},"spec":{"template":{},"traffic":%s}}`,
				v1alpha1.VersionKey, v1alpha1.AttemptAnnotation, v1alpha1.HoldAnnotation, hold, tc.traffic)
			passed := patchKnative(t, raw, ActionResume, Input{ChangeWorkload: attempt(2)})
			checkTraffic(t, passed, tc.passed)

			failed := patchKnative(t, raw, ActionSuspend, Input{ChangeWorkload: attempt(2), Now: t0, Revisions: Revisions{Own: []string{"b"}, Good: "a"}})
			checkTraffic(t, failed, tc.failed)
			if hold := v1alpha1.HoldOf(readKnative(t, failed).Annotations); !hold.Suspends() || len(hold.Traffic.Failed) != 1 || hold.Freeze != "" {
				t.Errorf("held with %+v", hold)
			}
			end := patchKnative(t, failed, ActionResume, Input{ChangeWorkload: attempt(2)})
			checkTraffic(t, end, tc.end)
			for _, after := range [][]byte{passed, end} {
				if w := readKnative(t, after); w.Annotations[v1alpha1.HoldAnnotation] != "" || w.Labels[v1alpha1.SuspendLabel] != "" {
					t.Errorf("held with %v %v", w.Annotations, w.Labels)
				}
			}
		})
	}
}

// The suspension of a person stays when the check passes, and is restored after a fail.
func TestAFreezeDuringAHoldUntilJudgedStays(t *testing.T) {
	raw := fmt.Appendf(nil, `{"metadata":{"name":"web","resourceVersion":"1","uid":"u","labels":{%q:"v",%q:"f"},"annotations":{%[1]q:"v",%[3]q:"2",%[4]q:%[5]q}},"spec":{"template":{}}}`,
		v1alpha1.VersionKey, v1alpha1.SuspendLabel, v1alpha1.AttemptAnnotation, v1alpha1.HoldAnnotation, `{"attempt":2,"untilJudged":true,"traffic":{"to":"a"}}`)
	in := Input{ChangeWorkload: attempt(2), Now: t0, Revisions: Revisions{Own: []string{"b"}, Good: "a"}}
	for name, after := range map[string][]byte{
		"passed": patchKnative(t, raw, ActionResume, in),
		"failed": patchKnative(t, patchKnative(t, raw, ActionSuspend, in), ActionResume, in),
	} {
		if got := readKnative(t, after).Labels[v1alpha1.SuspendLabel]; got != "f" {
			t.Errorf("%s: suspended with %q", name, got)
		}
	}
}

func TestWhichServicesAreJudgedBeforeTheyGetTraffic(t *testing.T) {
	for name, tc := range map[string]struct {
		kind               workload.Kind
		service, namespace string
		want               bool
	}{
		"no setting":           {workload.KnativeService, "", "", false},
		"of the namespace":     {workload.KnativeService, "", "true", true},
		"of the Service":       {workload.KnativeService, "true", "", true},
		"the Service precedes": {workload.KnativeService, "false", "true", false},
		"an invalid one":       {workload.KnativeService, "yes", "true", true},
		"of another kind":      {workload.Deployment, "true", "true", false},
	} {
		annotations := func(value string) metav1.ObjectMeta {
			return metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.JudgeBeforeTrafficAnnotation: value}}
		}
		w := &workload.Workload{Kind: tc.kind, ObjectMeta: annotations(tc.service)}
		if got := judgesBeforeTraffic(w, &corev1.Namespace{ObjectMeta: annotations(tc.namespace)}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
