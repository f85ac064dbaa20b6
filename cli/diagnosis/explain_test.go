package diagnosis_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli/diagnosis"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

func input(change ...func(*diagnosis.Input)) diagnosis.Input {
	in := diagnosis.Input{
		Kind: "deployment", Namespace: "shop", Name: "web", OptedIn: true,
		Labels: map[string]string{}, Annotations: map[string]string{v1alpha1.VersionKey: "v", v1alpha1.AttemptAnnotation: "2"},
	}
	for _, c := range change {
		c(&in)
	}
	return in
}

func with(releases ...*v1alpha1.ChangeWorkload) func(*diagnosis.Input) {
	return func(in *diagnosis.Input) {
		for _, c := range releases {
			in.Releases = append(in.Releases, *c)
		}
	}
}

// ofJudges adds a batch that the server and judge metrics judge, and of which the server passed stage POST.
func ofJudges(judged corev1.ConditionStatus, message string) func(*diagnosis.Input) {
	b := v1alpha1.ChangePod{ObjectMeta: metav1.ObjectMeta{Name: "web--x--v--x--1", OwnerReferences: []metav1.OwnerReference{{UID: "r", Controller: new(true)}}}}
	b.Spec.Judges = []v1alpha1.Judge{{Name: v1alpha1.JudgeServer}, {Name: v1alpha1.JudgeMetrics, TimeoutSeconds: 420}}
	b.Status.Phase, b.Status.PostTimeOutThreshold = v1alpha1.BatchPostSubmitted, 120
	b.Status.Conditions = []apis.Condition{{Type: v1alpha1.BatchJudged, Status: judged, Message: message}}
	return func(in *diagnosis.Input) { in.Batches = append(in.Batches, b) }
}

// saved adds the saved templates of versions.
func saved(versions ...string) func(*diagnosis.Input) {
	return func(in *diagnosis.Input) {
		for _, v := range versions {
			in.Saved = append(in.Saved, savedtemplate.Saved{Release: v1alpha1.Release{Version: v}})
		}
	}
}

func suspended(in *diagnosis.Input) { in.Labels[v1alpha1.SuspendLabel] = "1700000000" }

func TestAnExplanationNamesTheReasonAndTheWaysOut(t *testing.T) {
	const yes, no, unknown = corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
	failed := release(v1alpha1.ReleaseSuspend, no, "CheckFailed", yes, "Suspended")
	failed.Status.DefenseCheckFailPods = []v1alpha1.PodSummary{{Pod: "web-1", Message: "too many errors"}}
	repairing := release(v1alpha1.ReleaseRunning, unknown, "Judging", no, "NotSuspended")
	repairing.Spec.Attempt = 3
	good := release(v1alpha1.ReleaseSuccess, yes, "AllPodsPassed", no, "")
	good.Spec.Reversion, good.Spec.Attempt = "good", 1
	lateFail := release(v1alpha1.ReleaseSuspend, no, "CheckFailed", yes, "Suspended")
	lateFail.Spec.Reversion, lateFail.Spec.Attempt = "late", 1
	empty := release(v1alpha1.ReleaseSuccess, yes, "AllPodsPassed", no, "")
	empty.Spec.Reversion, empty.Spec.Attempt = "empty", 1
	empty.Status.Conditions = append(empty.Status.Conditions, apis.Condition{Type: v1alpha1.ReleaseJudged, Status: no, Reason: v1alpha1.ReasonNoVerdict})
	order := release(v1alpha1.ReleaseSuspend, no, "OrderCheckFailed", yes, "Suspended")
	order.Status.Conditions = append(order.Status.Conditions, apis.Condition{Type: v1alpha1.ReleaseOrderJudged, Status: no, Reason: v1alpha1.ReasonOrderCheckFailed})
	bypass, err := json.Marshal(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: "bob", Suspend: "1700000000", Attempt: 2})
	if err != nil {
		t.Fatal(err)
	}
	running := release(v1alpha1.ReleaseRunning, unknown, "Judging", no, "NotSuspended")
	running.UID = "r"
	waiting := v1alpha1.ChangePod{ObjectMeta: metav1.ObjectMeta{Name: "web--x--v--x--1", OwnerReferences: []metav1.OwnerReference{{UID: "r", Controller: new(true)}}}}
	waiting.Status.Phase = v1alpha1.BatchPreWait
	waiting.Status.Submissions = []v1alpha1.Submission{{Stage: v1alpha1.StagePre, Attempts: 2, Error: &v1alpha1.ServerError{Reason: v1alpha1.ReasonServerUnreachable, Message: "connection refused"}}}

	untilJudged := release(v1alpha1.ReleaseRunning, unknown, "Judging", no, v1alpha1.ReasonTrafficUntilJudged)
	drifted := release(v1alpha1.ReleaseSuccess, yes, "AllPodsPassed", no, "")
	drifted.Status.Conditions = append(drifted.Status.Conditions, apis.Condition{Type: v1alpha1.ReleaseDrifted, Status: yes, Message: "images were changed"})
	at := metav1.NewTime(time.Unix(1_700_000_000, 0))
	probation := release(v1alpha1.ReleaseSuccess, yes, "AllPodsPassed", no, "")
	probation.Status.Probation = &v1alpha1.Probation{EndTime: at, NextLookTime: &at, Looks: 3}

	for name, tc := range map[string]struct {
		input diagnosis.Input
		state diagnosis.State
		why   []string
		ways  []string
	}{
		"a namespace that is not opted in": {input(func(in *diagnosis.Input) { in.OptedIn = false }), diagnosis.StateNotJudged,
			[]string{"namespace shop has no label admission-webhook-altershield=enabled, so"}, []string{"kubectl label namespace shop admission-webhook-altershield=enabled --overwrite"}},
		"a namespace whose label has another value": {input(func(in *diagnosis.Input) { in.OptedIn, in.NamespaceLabel = false, "true" }), diagnosis.StateNotJudged,
			[]string{`has no label admission-webhook-altershield=enabled: its value is "true", so`}, []string{"--overwrite"}},
		"a namespace that cannot be opted in": {input(func(in *diagnosis.Input) { in.OptedIn, in.Namespace = false, "kube-system" }), diagnosis.StateNotJudged,
			[]string{"releases in namespace kube-system are never judged"}, nil},
		"a release on probation": {input(with(probation)), diagnosis.StatePassed,
			[]string{"on probation until 2023-11-14T22:13:20Z: function judge looked 3 times"}, nil},
		"a workload without a version": {input(func(in *diagnosis.Input) { in.Annotations = nil }), diagnosis.StateNotJudged,
			[]string{"no version yet"}, []string{"kubectl breakwater doctor"}},
		"a template that the webhook did not see": {input(with(good), func(in *diagnosis.Input) { in.Missed = "w" }), diagnosis.StateRunning,
			[]string{"the webhook has not seen the pod template"}, []string{"kubectl breakwater doctor"}},
		"a suspended workload, of which another version was applied at 0 replicas": {input(with(empty, failed, good), suspended), diagnosis.StateHeld,
			[]string{"because"}, []string{"rollback deployment/web -n shop --to good"}},
		"a suspended workload": {input(with(failed, good), suspended), diagnosis.StateHeld,
			[]string{"suspended since 2023-11-14T22:13:20Z: changes of its pod template are denied, unless isBlockingUp is off or shadow is on", "pod web-1 failed its check: too many errors"},
			[]string{"simulate apply -n shop -f FILE", "approve deployment/web -n shop -m", "repair deployment/web -n shop --image", "rollback deployment/web -n shop --to good", "retry deployment/web"}},
		// A version failed after it had succeeded: the ChangeWorkload of the version before was deleted.
		"a suspended workload, of which no other release exists": {input(with(failed), suspended, saved("v", "good", "older")), diagnosis.StateHeld,
			[]string{"because"}, []string{"rollback deployment/web -n shop --to good"}},
		"a suspended workload, of which the newest saved version failed": {input(with(failed, lateFail), suspended, saved("late", "good")), diagnosis.StateHeld,
			[]string{"because"}, []string{"rollback deployment/web -n shop --to good"}},
		"a suspension whose repair runs": {input(with(failed, repairing), suspended, func(in *diagnosis.Input) { in.Annotations[v1alpha1.AttemptAnnotation] = "3" }), diagnosis.StateRunning,
			[]string{"version v: pod web-1 failed its check: too many errors"}, []string{"status deployment/web"}},
		"a suspension whose repair was used": {input(with(failed), suspended, func(in *diagnosis.Input) { in.Annotations[v1alpha1.BypassAnnotation] = string(bypass) }), diagnosis.StateHeld,
			[]string{"already admitted for bob"}, []string{"repair deployment/web -n shop --again"}},
		"an order that failed as a whole": {input(with(order), suspended), diagnosis.StateHeld,
			[]string{"because"}, []string{"approve deployment/web -n shop --order"}},
		"an unjudged release": {input(with(release(v1alpha1.ReleaseRunning, unknown, "HeldUnjudged", yes, "HeldUnjudged"))), diagnosis.StateHeld,
			[]string{"is unjudged"}, []string{"approve deployment/web", "reject deployment/web"}},
		"a release that another setting holds": {input(with(heldBy("no-verdict-contradicted is Hold"))), diagnosis.StateHeld,
			[]string{"no-verdict-contradicted is Hold"}, []string{"approve deployment/web", "reject deployment/web"}},
		"a release without a server": {input(with(release(v1alpha1.ReleaseFailed, no, "OrderNotAccepted", no, ""))), diagnosis.StateFailed,
			[]string{"because"}, []string{"kubectl breakwater doctor", "retry deployment/web"}},
		"a release whose pods do not become Ready": {input(with(release(v1alpha1.ReleaseFailed, no, "ReleaseTimedOut", no, ""), good)), diagnosis.StateFailed,
			[]string{"because"}, []string{"kubectl describe pods -n shop", "rollback deployment/web -n shop --to good"}},
		"a batch that waits for the server": {input(with(running), func(in *diagnosis.Input) { in.Batches = []v1alpha1.ChangePod{waiting} }), diagnosis.StateRunning,
			[]string{"batch web--x--v--x--1 waits for the server: call 2 of stage PRE failed: ServerUnreachable: connection refused"}, []string{"status deployment/web"}},
		"a batch that waits for judge metrics": {input(with(running), ofJudges(corev1.ConditionUnknown, "waiting for judge metrics")), diagnosis.StateRunning,
			[]string{"batch web--x--v--x--1 has no verdict yet: waiting for judge metrics; judge metrics has 420 s from the creation of the batch"}, []string{"status deployment/web"}},
		"a batch that a judge holds": {input(with(running), ofJudges(corev1.ConditionFalse, "metrics: no verdict in time")), diagnosis.StateRunning,
			[]string{"batch web--x--v--x--1 is held: metrics: no verdict in time"}, []string{"status deployment/web"}},
		"a rollout that is stuck": {input(with(release(v1alpha1.ReleaseNoNewBatch, unknown, "RolloutStuck", no, "NotSuspended"))), diagnosis.StateRunning,
			[]string{"because"}, []string{"kubectl describe deployment/web -n shop", "kubectl get pods -n shop"}},
		"a release without traffic": {input(with(untilJudged)), diagnosis.StateRunning, []string{"held"}, []string{"status deployment/web"}},
		"a workload with a label that may deny its deletion": {input(with(good), func(in *diagnosis.Input) {
			in.Annotations[v1alpha1.VersionKey], in.Annotations[v1alpha1.AttemptAnnotation] = "good", "1"
			in.Labels["policy.kruise.io/disable-cascading-deletion"] = "true"
		}), diagnosis.StatePassed, []string{"because"}, []string{"simulate delete deployment/web -n shop"}},
		"a release with changed images": {input(with(drifted)), diagnosis.StatePassed, []string{"images were changed"}, nil},
		"a release that passed":         {input(with(release(v1alpha1.ReleaseSuccess, yes, "AllPodsPassed", no, ""))), diagnosis.StatePassed, []string{"because"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := diagnosis.Explain(tc.input)
			if e.State != tc.state {
				t.Errorf("state is %s, want %s", e.State, tc.state)
			}
			why := strings.Join(e.Why, "\n")
			if strings.Contains(why, "no-verdict is Hold") {
				t.Errorf("a setting that does not decide is in:\n%s", why)
			}
			for _, w := range tc.why {
				if !strings.Contains(why, w) {
					t.Errorf("%q is not in:\n%s", w, why)
				}
			}
			var commands []string
			for _, w := range e.WaysOut {
				commands = append(commands, w.Command)
			}
			all := strings.Join(commands, "\n")
			for _, w := range tc.ways {
				if !strings.Contains(all, w) {
					t.Errorf("%q is not in:\n%s", w, all)
				}
			}
			if tc.ways == nil && len(commands) > 0 {
				t.Errorf("ways out of nothing: %s", all)
			}
		})
	}
}

func TestAnExplanationNamesSelfHealingOnlyIfItCanRollBack(t *testing.T) {
	const yes, no, unknown = corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
	running, good := release(v1alpha1.ReleaseRunning, unknown, "Judging", no, ""), release(v1alpha1.ReleaseSuccess, yes, "AllPodsPassed", no, "")
	good.Spec.Reversion, good.Spec.Attempt = "good", 1
	knative := func(in *diagnosis.Input) { in.Kind = workload.KnativeService.Argument() }
	for name, tc := range map[string]struct {
		input diagnosis.Input
		want  bool
	}{
		"another version succeeded": {input(with(running, good)), true},
		"a first release":           {input(with(running)), false},
		"a Knative Service":         {input(with(running, good), knative), false},
	} {
		why := strings.Join(diagnosis.Explain(tc.input).Why, "\n")
		if !strings.Contains(why, "no pod is in a batch yet") || strings.Contains(why, "Breakwater may roll back") != tc.want || strings.Contains(why, "self-healing") != tc.want {
			t.Errorf("%s: the explanation is\n%s", name, why)
		}
	}
}

func TestAnExplanationNamesAFailedPodOnce(t *testing.T) {
	failed := release(v1alpha1.ReleaseSuspend, corev1.ConditionFalse, "CheckFailed", corev1.ConditionTrue, "Suspended")
	failed.Status.DefenseCheckFailPods = []v1alpha1.PodSummary{{Pod: "web-1", Message: "too many errors"}}
	for i := range failed.Status.Conditions {
		failed.Status.Conditions[i].Message = "pod web-1 failed its check: too many errors"
	}
	why := strings.Join(diagnosis.Explain(input(with(failed), suspended)).Why, "\n")
	if strings.Count(why, "web-1") != 1 {
		t.Errorf("the explanation is\n%s", why)
	}
}

func TestATreeShowsReleasesBatchesAndPods(t *testing.T) {
	c := release(v1alpha1.ReleaseSuspend, corev1.ConditionFalse, "CheckFailed", corev1.ConditionTrue, "Suspended")
	c.UID, c.Spec.Reversion = "r", "v"
	c.Status.Counts = v1alpha1.PodCounts{Pods: 2, Passed: 1, Failed: 1}
	b := batch([]string{"web-1", "web-2"}, "pass", v1alpha1.PodSummary{Pod: "web-2", Verdict: "fail", Message: "find error"})
	b.Name, b.OwnerReferences = "web--x--v--x--1", []metav1.OwnerReference{{UID: "r", Controller: new(true)}}
	b.Status.Phase, b.Status.Message = v1alpha1.BatchExecuteDone, "PostFinish"
	got := diagnosis.Tree(input(with(c), suspended, func(in *diagnosis.Input) { in.Batches = []v1alpha1.ChangePod{b} }), diagnosis.Plain)
	want := `shop/deployment/web  suspended
└── release v attempt 2 (current)  Held CheckFailed  1 of 2 pods passed, 1 failed
    └── batch 1  ExecuteDone after PostFinish
        ├── pod web-1  Pass
        └── pod web-2  Fail by a person: find error
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTheWayOutOfAnOrderThatIsNotAcceptedNamesWhatToCheck(t *testing.T) {
	uncalled := release(v1alpha1.ReleaseFailed, corev1.ConditionFalse, v1alpha1.ReasonOrderNotAccepted, corev1.ConditionFalse, "")
	rejected := uncalled.DeepCopy()
	rejected.Status.Order = &v1alpha1.Order{RequestedTime: &metav1.Time{}}
	for want, c := range map[string]*v1alpha1.ChangeWorkload{"the Broker, function submit": uncalled, "the address and token": rejected} {
		if got := diagnosis.Explain(input(with(c))).WaysOut[0].Do; !strings.Contains(got, want) {
			t.Errorf("%q is not in: %s", want, got)
		}
	}
}

// TestAWayOutHelpsInTheStateInWhichItIsPrinted has states in which other ways out are denied or
// change nothing.
func TestAWayOutHelpsInTheStateInWhichItIsPrinted(t *testing.T) {
	const yes, no, unknown = corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
	failed := release(v1alpha1.ReleaseSuspend, no, "CheckFailed", yes, "Suspended")
	former := failed.DeepCopy()
	former.Spec.Reversion, former.Spec.Attempt = "former", 1
	former.Status.Conditions = append(former.Status.Conditions, apis.Condition{Type: v1alpha1.ReleaseOrderJudged, Status: no, Reason: v1alpha1.ReasonOrderCheckFailed})
	bypass, err := json.Marshal(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: "bob", Suspend: "1700000000", Attempt: 2})
	if err != nil {
		t.Fatal(err)
	}
	repaired := func(in *diagnosis.Input) { in.Annotations[v1alpha1.BypassAnnotation] = string(bypass) }
	allowed := func(in *diagnosis.Input) {
		in.Annotations[v1alpha1.BypassAnnotation] = strings.TrimSuffix(string(bypass), "}") + `,"anotherRepair":true}`
	}
	unaccepted := release(v1alpha1.ReleaseInit, unknown, "OrderPending", yes, "HeldUnjudged")
	unaccepted.Status.Conditions = append(unaccepted.Status.Conditions, apis.Condition{Type: v1alpha1.ReleaseOrderAccepted, Status: unknown, Reason: v1alpha1.ReasonOrderNotAccepted})
	for name, tc := range map[string]struct {
		input        diagnosis.Input
		ways, others []string
	}{
		"a suspension whose repair is left": {input(with(failed), suspended), []string{"approve", "repair deployment/web -n shop --image", "retry deployment/web -n shop"}, []string{"--again"}},
		"a freeze with an empty value":      {input(with(former), func(in *diagnosis.Input) { in.Labels[v1alpha1.SuspendLabel] = "" }), []string{"repair deployment/web -n shop --image"}, nil},
		"a suspension whose repair failed":  {input(with(failed, former), suspended, repaired), []string{"approve", "repair deployment/web -n shop --again", "retry deployment/web -n shop --again"}, nil},
		"a repair that runs, and another is allowed": {input(with(former, release(v1alpha1.ReleaseRunning, unknown, "Judging", no, "")), suspended, allowed),
			[]string{"repair deployment/web -n shop --image", "retry deployment/web -n shop"}, []string{"--again"}},
		"a repair that runs": {input(with(former, release(v1alpha1.ReleaseRunning, unknown, "Judging", no, "")), suspended, repaired),
			[]string{"status deployment/web", "retry deployment/web -n shop --again"}, []string{"approve"}},
		"a repair that is held": {input(with(former, release(v1alpha1.ReleaseRunning, unknown, "HeldUnjudged", yes, "HeldUnjudged")), suspended, repaired),
			[]string{"approve deployment/web -n shop -m", "reject"}, []string{"--order"}},
		"a repair that timed out":               {input(with(former, release(v1alpha1.ReleaseFailed, no, "ReleaseTimedOut", no, "")), suspended, repaired), []string{"repair deployment/web -n shop --again"}, []string{"approve"}},
		"an order that fails, as not accepted":  {input(with(release(v1alpha1.ReleaseSuspend, no, "OrderNotAccepted", yes, "Suspended")), suspended), []string{"doctor", "repair"}, []string{"approve"}},
		"a failed check that was lost":          {input(with(release(v1alpha1.ReleaseSuspend, no, "FailedCheckLost", yes, "Suspended")), suspended), []string{"repair"}, []string{"approve"}},
		"an order that is held as not accepted": {input(with(unaccepted)), []string{"doctor"}, []string{"approve", "reject"}},
		"a rollout that was resumed by hand":    {input(with(release(v1alpha1.ReleaseRunning, unknown, "Judging", no, "ResumedUnjudged"))), []string{"approve", "reject", "status deployment/web"}, nil},
		"a complete rollout that is unjudged":   {input(with(release(v1alpha1.ReleaseRunning, unknown, "HeldUnjudged", no, "NotSuspended"))), []string{"approve", "reject"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var commands []string
			for _, w := range diagnosis.Explain(tc.input).WaysOut {
				commands = append(commands, w.Command)
			}
			all := strings.Join(commands, "\n")
			for _, w := range tc.ways {
				if !strings.Contains(all, w) {
					t.Errorf("%q is not in:\n%s", w, all)
				}
			}
			for _, w := range tc.others {
				if strings.Contains(all, w) {
					t.Errorf("%q is in:\n%s", w, all)
				}
			}
		})
	}
}

func TestOnlyWithoutASuspensionANewerTemplateIsAdmitted(t *testing.T) {
	held := with(release(v1alpha1.ReleaseRunning, corev1.ConditionUnknown, "HeldUnjudged", corev1.ConditionTrue, "HeldUnjudged"))
	for want, in := range map[bool]diagnosis.Input{true: input(held), false: input(held, suspended)} {
		why := strings.Join(diagnosis.Explain(in).Why, "\n")
		if strings.Contains(why, "a newer template is admitted") != want {
			t.Errorf("want that a newer template is admitted: %t, got\n%s", want, why)
		}
	}
}

// heldBy is an unjudged release that a setting holds.
func heldBy(rule string) *v1alpha1.ChangeWorkload {
	c := release(v1alpha1.ReleaseRunning, corev1.ConditionUnknown, "HeldUnjudged", corev1.ConditionTrue, "HeldUnjudged")
	for i := range c.Status.Conditions {
		c.Status.Conditions[i].Message = "1 are unjudged and wait for a late verdict or a person (" + rule + ")"
	}
	return c
}
