package suspend_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/admissiontest"
	"github.com/breakwater-dev/breakwater/admission/change/suspend"
	"github.com/breakwater-dev/breakwater/admission/change/version"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/eventstest"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/gen"
)

var (
	build   = gen.StoredDeployment
	stamped = gen.Versioned
	image   = gen.Image
	label   = gen.Label
	held    = gen.Held
	asks    = label(v1alpha1.IgnoredSuspendLabel, "true")
)

const fixed = "deployment sleep is suspended"

// world is the gate and what it tells.
type world struct {
	gate   *suspend.Handler
	told   *record.FakeRecorder
	sent   *eventstest.Recorder
	stamps *version.Handler
	// rights answer who may bypass; asked is who was asked about.
	rights *rights
	// in are the settings in force.
	in *settings.Settings
}

// rights implements suspend.Rights.
type rights struct {
	right suspend.Authorization
	asked []string
}

func (r *rights) MayBypass(_ context.Context, user authenticationv1.UserInfo, namespace string) suspend.Authorization {
	r.asked = append(r.asked, user.Username+" in "+namespace)
	return r.right
}

func newWorld(h admissiontest.History, blocking bool) world {
	s := settings.Default()
	s.Blocking = blocking
	in := func() settings.Settings { return s }
	w := world{rights: &rights{}, in: &s, told: record.NewFakeRecorder(10), sent: &eventstest.Recorder{}}
	w.gate = &suspend.Handler{Kind: workload.Deployment, Settings: in, History: h, Authorizer: w.rights, Recorder: w.told, Sender: w.sent}
	w.stamps = &version.Handler{Kind: workload.Deployment, Settings: in, History: h, Clock: clocktesting.NewFakePassiveClock(gen.Now)}
	return w
}

// ask sends an update the way of the API server: the mutating webhook, if it
// answers, then the gate.
func (w world) ask(t *testing.T, req *admissionv1.AdmissionRequest, skipped bool) admission.Answer {
	t.Helper()
	if !skipped {
		admissiontest.Apply(t, req, w.stamps.Admit(t.Context(), req).Response)
	}
	return w.gate.Admit(t.Context(), req)
}

func TestAnUpdateOfASuspendedDeployment(t *testing.T) {
	used := gen.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: "bob", Suspend: gen.SuspendedAt, Attempt: 2})
	good := gen.Version(build(image("busybox:0")))
	for name, tc := range map[string]struct {
		old     *appsv1.Deployment
		new     *appsv1.Deployment
		off     bool // blocking
		skipped bool // the mutating webhook did not answer
		unknown bool // the history
		says    string
		message string
	}{
		"to another template is refused": {
			old: build(stamped(1), held), new: build(stamped(1), held, image("busybox:2")), says: v1alpha1.ReasonReleaseDenied, message: fixed,
		},
		"to another template is refused however it got its suspension": {
			old: build(stamped(1), label(v1alpha1.SuspendLabel, "by hand")), new: build(stamped(1), label(v1alpha1.SuspendLabel, "by hand"), image("busybox:2")),
			says: v1alpha1.ReasonReleaseDenied, message: fixed,
		},
		"without its suspend label is refused": {
			old: build(stamped(1), held), new: build(stamped(1), held, gen.WithoutLabel(v1alpha1.SuspendLabel)), says: v1alpha1.ReasonReleaseDenied, message: fixed,
		},
		"without its hold is refused": {
			old: build(stamped(1), held), new: build(stamped(1), held, gen.WithoutAnnotation(v1alpha1.HoldAnnotation)), says: v1alpha1.ReasonReleaseDenied, message: fixed,
		},
		"without its pause is refused": {
			old: build(stamped(1), held), new: build(stamped(1), held, gen.Paused(false)), says: v1alpha1.ReasonReleaseDenied, message: fixed,
		},
		"that asks for a repair without another template is refused if it ends the hold": {
			old: build(stamped(1), held), new: build(stamped(1), held, asks, gen.Paused(false)), says: v1alpha1.ReasonReleaseDenied, message: fixed,
		},
		"to nothing but metadata is admitted": {
			old: build(stamped(1), held), new: build(stamped(1), held, label("team", "a")), says: admission.DecisionAdmitted,
		},
		"that is the repair is admitted": {
			old: build(stamped(1), held), new: build(stamped(1), held, asks, image("busybox:2")), says: v1alpha1.ReasonRepairAdmitted,
		},
		"that replaces all with the repair is admitted": {
			old: build(stamped(1), held), new: build(asks, image("busybox:2")), says: v1alpha1.ReasonRepairAdmitted,
		},
		"that is a second repair is refused, and told why": {
			old: build(stamped(2), held, used), new: build(stamped(2), held, used, asks, image("busybox:3")), says: v1alpha1.ReasonReleaseDenied,
			message: fixed + ": a repair of this suspension was already admitted; remove the annotation altershield.defense.antgroup.com/bypass to allow another",
		},
		"that is a second repair is admitted when the record of the first was removed": {
			old: build(stamped(2), held), new: build(stamped(2), held, asks, image("busybox:3")), says: v1alpha1.ReasonRepairAdmitted,
		},
		"that is a second repair and removes the record of the first is refused": {
			old: build(stamped(2), held, used), new: build(stamped(2), held, asks, image("busybox:3")), says: v1alpha1.ReasonReleaseDenied,
			message: fixed + ": a repair of this suspension was already admitted; remove the annotation altershield.defense.antgroup.com/bypass to allow another",
		},
		"back to a good version is admitted": {
			old: build(stamped(2), held), new: build(stamped(2), held, image("busybox:0")), says: v1alpha1.ReasonRollbackAdmitted,
		},
		"by rollout undo, which replaces all annotations, is admitted": {
			old: build(stamped(2), held, used), new: build(stamped(2), held, image("busybox:0"), func(d *appsv1.Deployment) {
				d.Annotations = build(image("busybox:0"), stamped(1)).Annotations
			}), says: v1alpha1.ReasonRollbackAdmitted,
		},
		"to another template is refused while the history is unknown": {
			old: build(stamped(1), held), new: build(stamped(1), held, image("busybox:0")), unknown: true, says: v1alpha1.ReasonReleaseDenied,
			message: fixed + ": looking up whether this version succeeded failed: try again",
		},
		"that is the repair is refused if the mutating webhook did not see it": {
			old: build(stamped(1), held), new: build(stamped(1), held, asks, image("busybox:2")), skipped: true, says: v1alpha1.ReasonReleaseDenied,
			message: fixed + ": the webhook mdeployment.kb.io did not answer: try again",
		},
		"with a record made by hand of another attempt is refused": {
			old: build(stamped(2), held), new: build(stamped(2), held, image("busybox:2"),
				gen.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: admissiontest.User, Suspend: gen.SuspendedAt, Attempt: 2})),
			skipped: true, says: v1alpha1.ReasonReleaseDenied, message: fixed,
		},
		"with a record made by hand of another author is refused": {
			old: build(stamped(2), held), new: build(stamped(2), held, image("busybox:2"),
				gen.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: "bob", Suspend: gen.SuspendedAt, Attempt: 3})),
			skipped: true, says: v1alpha1.ReasonReleaseDenied, message: fixed,
		},
		"with blocking off is admitted": {
			old: build(stamped(1), held), new: build(stamped(1), held, image("busybox:2")), off: true, says: admission.DecisionAdmitted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(admissiontest.History{Successes: []string{good}, Unknown: tc.unknown}, !tc.off)
			answer := w.ask(t, admissiontest.Request(t, tc.old, tc.new), tc.skipped)
			if answer.Decision != tc.says {
				t.Errorf("decided %s, want %s", answer.Decision, tc.says)
			}
			if answer.Response.Allowed != (tc.message == "") {
				t.Errorf("allowed: %v", answer.Response.Allowed)
			}
			if tc.message == "" {
				return
			}
			if diff := cmp.Diff(tc.message, answer.Response.Result.Message); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(fixed, string(answer.Response.Result.Reason)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func refusedUpdate(t *testing.T) *admissionv1.AdmissionRequest {
	return admissiontest.Request(t, build(stamped(1), held), build(stamped(1), held, image("busybox:2")))
}

func TestARefusalNeverInvitesToTryAgain(t *testing.T) {
	result := newWorld(admissiontest.History{}, true).ask(t, refusedUpdate(t), false).Response.Result
	if result.Details.RetryAfterSeconds != 0 {
		t.Errorf("retry after %d s", result.Details.RetryAfterSeconds)
	}
	if result.Code != http.StatusForbidden {
		t.Errorf("code %d", result.Code)
	}
}

func TestARefusalNamesTheWaysOut(t *testing.T) {
	bad := build(stamped(2), held)
	failed := gen.ChangeWorkload(bad, 2, v1alpha1.WorkloadSuspend)
	failed.Status.DefenseCheckFailPods = []v1alpha1.PodSummary{{Pod: "sleep-a", Message: "find error"}, {Pod: "sleep-b"}}
	good := gen.ChangeWorkload(build(image("busybox:0")), 1, v1alpha1.WorkloadSuccess)
	h := admissiontest.History{Known: []*v1alpha1.ChangeWorkload{good, failed}}
	result := newWorld(h, true).ask(t, admissiontest.Request(t, bad, build(stamped(2), held, image("busybox:2"))), false).Response.Result
	want := &metav1.StatusDetails{
		Group: "apps", Kind: "deployments", Name: "sleep", UID: "sleep-uid",
		Causes: []metav1.StatusCause{
			{
				Type: suspend.CauseSuspended, Field: "metadata.labels[altershield.defense.antgroup.com/suspend]",
				Message: "suspended since " + time.Unix(1700000000, 0).UTC().Format(time.RFC3339) + ": version " + failed.Spec.Reversion +
					" (ChangeWorkload " + failed.Name + ") failed its check: sleep-a (find error), sleep-b",
			},
			{
				Type:    suspend.CauseRepair,
				Message: `apply the repaired Deployment with the label altershield.defense.antgroup.com/ignored-suspend: "true"; it is admitted once per suspension`,
			},
			{
				Type: suspend.CauseRollback,
				Message: "apply the template of version " + good.Spec.Reversion + ", which succeeded (ChangeWorkload " + good.Name +
					"): a rollback to it is always admitted",
			},
			{
				Type: suspend.CauseAsk,
				Message: "users who may update changepods/status in namespace default can overrule the verdict of the failed pods; " +
					"operators of Breakwater (namespace altershieldoperator-system) can disable denials for all workloads: OpsConfigInfo of type isBlockingUp",
			},
		},
	}
	if diff := cmp.Diff(want, result.Details); diff != "" {
		t.Error(diff)
	}
}

func TestARefusalOfASecondRepairNamesWhoUsedTheFirst(t *testing.T) {
	used := gen.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: "bob", Suspend: gen.SuspendedAt, Attempt: 2})
	causes := newWorld(admissiontest.History{}, true).ask(t,
		admissiontest.Request(t, build(stamped(2), held, used), build(stamped(2), held, used, asks, image("busybox:3"))), false,
	).Response.Result.Details.Causes
	want := "a repair of this suspension was already admitted for bob; " +
		"`kubectl annotate deployment sleep -n default altershield.defense.antgroup.com/bypass-` allows another"
	if diff := cmp.Diff(want, causes[1].Message); diff != "" {
		t.Error(diff)
	}
}

func TestARefusalOfAFreezeByHandSaysThatNoVersionFailed(t *testing.T) {
	byHand := label(v1alpha1.SuspendLabel, "holidays")
	// A version that failed is known for some time after its repair succeeded.
	failed, repair := &v1alpha1.ChangeWorkload{}, &v1alpha1.ChangeWorkload{}
	failed.Spec.Attempt, failed.Status.Phase = 1, v1alpha1.WorkloadSuspend
	repair.Spec.Attempt, repair.Status.Phase = 2, v1alpha1.WorkloadSuccess
	for _, known := range [][]*v1alpha1.ChangeWorkload{nil, {failed, repair}} {
		causes := newWorld(admissiontest.History{Known: known}, true).ask(t,
			admissiontest.Request(t, build(stamped(2), byHand), build(stamped(2), byHand, image("busybox:2"))), false,
		).Response.Result.Details.Causes
		want := "suspended since holidays; the failed version is unknown: the label was set by hand, or the ChangeWorkload was deleted"
		if diff := cmp.Diff(want, causes[0].Message); diff != "" {
			t.Error(diff)
		}
	}
}

func TestARefusalIsTold(t *testing.T) {
	w := newWorld(admissiontest.History{}, true)
	w.ask(t, refusedUpdate(t), false)
	select {
	case e := <-w.told.Events:
		if want := "Warning ReleaseDenied update by alice: " + fixed; e != want {
			t.Errorf("told %q, want %q", e, want)
		}
	default:
		t.Error("no Event on the Deployment")
	}
	sent := w.sent.Sent(events.TypeReleaseDenied)
	if len(sent) != 1 {
		t.Fatalf("sent %d CloudEvents", len(sent))
	}
	e := sent[0]
	if e.ID() != "request-uid/denied" || e.Subject() != "sleep" {
		t.Errorf("sent %s", e)
	}
	var data events.ReleaseDenied
	if err := e.DataAs(&data); err != nil {
		t.Fatal(err)
	}
	if data.User != admissiontest.User || data.Message != fixed {
		t.Errorf("sent %+v", data)
	}
}

func TestTheRefusalOfADryRunIsNotTold(t *testing.T) {
	w := newWorld(admissiontest.History{}, true)
	req := refusedUpdate(t)
	req.DryRun = ptr.To(true)
	if w.ask(t, req, false).Response.Allowed {
		t.Error("admitted")
	}
	if len(w.told.Events) > 0 || len(w.sent.Sent()) > 0 {
		t.Error("told")
	}
}

func TestAHugeDeploymentIsRefusedLikeAnyOther(t *testing.T) {
	huge := gen.Annotation("note", strings.Repeat("x", 1<<20))
	req := admissiontest.Request(t, build(stamped(1), held, huge), build(stamped(1), held, huge, image("busybox:2")))
	if got := newWorld(admissiontest.History{}, true).ask(t, req, false).Response.Result.Message; got != fixed {
		t.Errorf("said %q", got)
	}
}

func TestALongNameIsSaidInFull(t *testing.T) {
	long := gen.Name(strings.Repeat("n", 253))
	req := admissiontest.Request(t, build(stamped(1), held, long), build(stamped(1), held, long, image("busybox:2")))
	want := "deployment " + strings.Repeat("n", 253) + " is suspended"
	if got := newWorld(admissiontest.History{}, true).ask(t, req, false).Response.Result.Message; got != want {
		t.Errorf("said %q", got)
	}
}

func TestWhatTheGateIsNotAskedForItAdmits(t *testing.T) {
	w := newWorld(admissiontest.History{}, true)
	create := admissiontest.Request(t, nil, build(held))
	scale := refusedUpdate(t)
	scale.SubResource = "scale"
	for _, req := range []*admissionv1.AdmissionRequest{create, scale} {
		if !w.gate.Admit(t.Context(), req).Response.Allowed {
			t.Errorf("refused %s %s", req.Operation, req.SubResource)
		}
	}
}

func TestAnUpdateThatDoesNotReadIsRefused(t *testing.T) {
	req := refusedUpdate(t)
	req.OldObject.Raw = []byte("{")
	if answer := newWorld(admissiontest.History{}, true).gate.Admit(t.Context(), req); answer.Response.Allowed {
		t.Error("admitted")
	}
}

func TestWhoMayBypass(t *testing.T) {
	used := gen.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: "bob", Suspend: gen.SuspendedAt, Attempt: 2})
	old := gen.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: "bob", Suspend: "1600000000", Attempt: 2})
	good := gen.Version(build(image("busybox:0")))
	const (
		lacking = fixed + `: a repair requires the verb "bypass" on changeworkloads.app.ops.cloud.alipay.com in namespace default, ` +
			"which alice does not have (no RBAC); an administrator of the namespace can grant ClusterRole breakwater-bypass"
		unknown = fixed + `: a repair requires the verb "bypass" on changeworkloads.app.ops.cloud.alipay.com in namespace default; ` +
			"checking whether alice has it failed: too slow; try again"
	)
	for name, tc := range map[string]struct {
		old, new *appsv1.Deployment
		right    suspend.Authorization
		loose    bool // bypass is Recorded
		off      bool // blocking
		user     string
		dry      bool
		asks     bool
		message  string
	}{
		"who has the right may repair":                           {old: build(stamped(1), held), new: build(stamped(1), held, asks, image("busybox:2")), right: suspend.Authorization{Allowed: true}, asks: true},
		"who does not may not":                                   {old: build(stamped(1), held), new: build(stamped(1), held, asks, image("busybox:2")), right: suspend.Authorization{Reason: "no RBAC"}, asks: true, message: lacking},
		"nobody may while the API server does not say":           {old: build(stamped(1), held), new: build(stamped(1), held, asks, image("busybox:2")), right: suspend.Authorization{Err: errors.New("too slow")}, asks: true, message: unknown},
		"an error is no grant":                                   {old: build(stamped(1), held), new: build(stamped(1), held, asks, image("busybox:2")), right: suspend.Authorization{Allowed: true, Err: errors.New("too slow")}, asks: true, message: unknown},
		"a dry run asks too":                                     {dry: true, old: build(stamped(1), held), new: build(stamped(1), held, asks, image("busybox:2")), right: suspend.Authorization{Reason: "no RBAC"}, asks: true, message: lacking},
		"to allow another repair needs the right":                {old: build(stamped(2), held, used), new: build(stamped(2), held), right: suspend.Authorization{Reason: "no RBAC"}, asks: true, message: lacking},
		"who has the right may allow another":                    {old: build(stamped(2), held, used), new: build(stamped(2), held), right: suspend.Authorization{Allowed: true}, asks: true},
		"the record of an earlier suspension is of no use":       {old: build(stamped(2), held, old), new: build(stamped(2), held)},
		"the way back is free":                                   {old: build(stamped(2), held), new: build(stamped(2), held, image("busybox:0"))},
		"a release is refused without asking":                    {old: build(stamped(1), held), new: build(stamped(1), held, image("busybox:2")), message: fixed},
		"other metadata is free":                                 {old: build(stamped(1), held), new: build(stamped(1), held, label("team", "a"))},
		"nobody is asked where bypasses are only recorded":       {loose: true, old: build(stamped(1), held), new: build(stamped(1), held, asks, image("busybox:2"))},
		"nobody is asked to allow another where they are":        {loose: true, old: build(stamped(2), held, used), new: build(stamped(2), held)},
		"nobody is asked with blocking off":                      {off: true, old: build(stamped(1), held), new: build(stamped(1), held, asks, image("busybox:2"))},
		"nobody is asked about our controller":                   {user: v1alpha1.ControllerUser, old: build(stamped(1), held), new: build(stamped(1), held, image("busybox:2"))},
		"nobody is asked about a workload that is not suspended": {old: build(stamped(1)), new: build(stamped(1), asks, image("busybox:2"))},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(admissiontest.History{Successes: []string{good}}, !tc.off)
			w.rights.right = tc.right
			if !tc.loose {
				w.in.Bypass = v1alpha1.BypassAuthorized
			}
			req := admissiontest.Request(t, tc.old, tc.new)
			req.DryRun = &tc.dry
			if tc.user != "" {
				req.UserInfo.Username = tc.user
			}
			answer := w.ask(t, req, false)
			if (len(w.rights.asked) > 0) != tc.asks {
				t.Errorf("asked about %v", w.rights.asked)
			}
			got := ""
			if answer.Response.Result != nil {
				got = answer.Response.Result.Message
			}
			if diff := cmp.Diff(tc.message, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
