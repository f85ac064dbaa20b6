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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	duckv1 "knative.dev/pkg/apis/duck/v1"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/admissiontest"
	"github.com/breakwater-dev/breakwater/admission/change/suspend"
	"github.com/breakwater-dev/breakwater/admission/change/version"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/eventstest"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

var (
	build     = builder.StoredDeployment
	versioned = builder.Versioned
	image     = builder.Image
	label     = builder.Label
	held      = builder.Held
	repair    = label(v1alpha1.IgnoredSuspendLabel, "true")

	repairedByBob = builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: "bob", Suspend: builder.SuspendedAt, Attempt: 2})
)

const suspendedMessage = "deployment sleep is suspended"

// fixture is the validating webhook with its recorders, and the mutating webhook.
type fixture struct {
	validating *suspend.Handler
	recorder   *record.FakeRecorder
	sent       *eventstest.Recorder
	mutating   *version.Handler
	// rights authorizes bypasses and records the checks.
	rights *rights
	// settings are the current settings.
	settings *settings.Settings
}

// rights is a fake authorizer of bypasses.
type rights struct {
	answer  suspend.Authorization
	checked []string
}

func (r *rights) MayBypass(_ context.Context, user authenticationv1.UserInfo, namespace string) suspend.Authorization {
	r.checked = append(r.checked, user.Username+" in "+namespace)
	return r.answer
}

func newFixture(h admissiontest.History, blocking bool) fixture {
	s := settings.Default()
	s.Blocking = blocking
	in := func() settings.Settings { return s }
	w := fixture{rights: &rights{}, settings: &s, recorder: record.NewFakeRecorder(10), sent: &eventstest.Recorder{}}
	w.validating = &suspend.Handler{Kind: workload.Deployment, Settings: in, History: h, Authorizer: w.rights, Recorder: w.recorder, Sender: w.sent}
	w.mutating = &version.Handler{Kind: workload.Deployment, Settings: in, History: h, Clock: clocktesting.NewFakePassiveClock(builder.Now)}
	return w
}

// event returns the next Event of the validating webhook, or an empty string.
func (w fixture) event() string {
	select {
	case e := <-w.recorder.Events:
		return e
	default:
		return ""
	}
}

// admit handles a request as the API server does: it calls the mutating webhook, and then the validating webhook.
func (w fixture) admit(t *testing.T, req *admissionv1.AdmissionRequest) admission.Answer {
	t.Helper()
	admissiontest.Apply(t, req, w.mutating.Admit(t.Context(), req).Response)
	return w.validateOnly(t, req)
}

// validateOnly handles a request as the API server does if the mutating webhook does not answer.
func (w fixture) validateOnly(t *testing.T, req *admissionv1.AdmissionRequest) admission.Answer {
	return w.validating.Admit(t.Context(), req)
}

// causesOf returns the causes of the denial of an update, with a fresh fixture.
func causesOf(t *testing.T, h admissiontest.History, before, after *appsv1.Deployment) []metav1.StatusCause {
	t.Helper()
	return newFixture(h, true).admit(t, admissiontest.Request(t, before, after)).Response.Result.Details.Causes
}

func TestTheDeletionOfASuspendedDeploymentNeedsTheRightToBypass(t *testing.T) {
	denial := suspendedMessage + ": a deletion requires the verb \"bypass\" on changeworkloads.app.ops.cloud.alipay.com in namespace default, which " + admissiontest.User + " does not have"
	for name, tc := range map[string]struct {
		old      *appsv1.Deployment
		recorded bool // bypass is Recorded
		off      bool // blocking is off
		rights   suspend.Authorization
		message  string
	}{
		"without the right":                     {old: build(versioned(1), held), message: denial},
		"with the right":                        {old: build(versioned(1), held), rights: suspend.Authorization{Allowed: true}},
		"the right is unknown":                  {old: build(versioned(1), held), rights: suspend.Authorization{Err: errors.New("no answer")}, message: "no answer; try again"},
		"suspended by a person":                 {old: build(versioned(1), label(v1alpha1.SuspendLabel, "by hand")), message: denial},
		"not suspended":                         {old: build(versioned(1))},
		"bypasses are recorded, not authorized": {old: build(versioned(1), held), recorded: true},
		"blocking is off":                       {old: build(versioned(1), held), off: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(admissiontest.History{}, !tc.off)
			w.rights.answer = tc.rights
			if w.settings.Bypass = v1alpha1.BypassAuthorized; tc.recorded {
				w.settings.Bypass = v1alpha1.BypassRecorded
			}
			req := admissiontest.Request(t, tc.old, tc.old)
			req.Operation, req.Object.Raw = admissionv1.Delete, nil
			answer := w.validating.Admit(t.Context(), req)
			if tc.message == "" {
				if !answer.Response.Allowed {
					t.Errorf("denied: %s", answer.Response.Result.Message)
				}
				return
			}
			if answer.Response.Allowed || !strings.Contains(answer.Response.Result.Message, tc.message) {
				t.Errorf("got %+v, want %q", answer.Response.Result, tc.message)
			}
			if event := w.event(); !strings.Contains(event, "delete by "+admissiontest.User) {
				t.Errorf("the Event is %q", event)
			}
		})
	}
}

func TestAnUpdateOfASuspendedDeployment(t *testing.T) {
	earlier := builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: "bob", Suspend: "1600000000", Attempt: 2})
	forged := builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: "bob", Suspend: builder.SuspendedAt, Attempt: 2, Freeze: "forged"})
	allowed := builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: "bob", Suspend: builder.SuspendedAt, Attempt: 2, AnotherRepair: true})
	const unrecorded = suspendedMessage + ": the webhook mdeployment.kb.io did not record this change, because it did not answer or failed: try again"
	suspended, paused := label(v1alpha1.SuspendLabel, builder.SuspendedAt), builder.Paused(true)
	good := builder.Version(build(image("busybox:0")))
	for name, tc := range map[string]struct {
		old     *appsv1.Deployment
		new     *appsv1.Deployment
		off     bool // blocking is off
		skipped bool // the mutating webhook did not answer
		unknown bool // the history is unknown
		reason  string
		message string
	}{
		"release": {
			old: build(versioned(1), held), new: build(versioned(1), held, image("busybox:2")), reason: v1alpha1.ReasonReleaseDenied, message: suspendedMessage,
		},
		"release, suspended by a user": {
			old: build(versioned(1), label(v1alpha1.SuspendLabel, "by hand")), new: build(versioned(1), label(v1alpha1.SuspendLabel, "by hand"), image("busybox:2")),
			reason: v1alpha1.ReasonReleaseDenied, message: suspendedMessage,
		},
		"suspend label removed": {
			old: build(versioned(1), held), new: build(versioned(1), held, builder.WithoutLabel(v1alpha1.SuspendLabel)), reason: v1alpha1.ReasonReleaseDenied, message: suspendedMessage,
		},
		"hold removed": {
			old: build(versioned(1), held), new: build(versioned(1), held, builder.WithoutAnnotation(v1alpha1.HoldAnnotation)), reason: v1alpha1.ReasonReleaseDenied, message: suspendedMessage,
		},
		"pause removed": {
			old: build(versioned(1), held), new: build(versioned(1), held, builder.Paused(false)), reason: v1alpha1.ReasonReleaseDenied, message: suspendedMessage,
		},
		"repair label, pause removed, same template": {
			old: build(versioned(1), held), new: build(versioned(1), held, repair, builder.Paused(false)), reason: v1alpha1.ReasonReleaseDenied, message: suspendedMessage,
		},
		"repair that a person had paused, resumed": {
			old: build(versioned(2), suspended, repairedByBob, paused), new: build(versioned(2), suspended, repairedByBob), reason: admission.DecisionAdmitted,
		},
		"repair that a person had paused, resumed while another one is allowed": {
			old: build(versioned(2), suspended, allowed, paused), new: build(versioned(2), suspended), reason: admission.DecisionAdmitted,
		},
		"failed repair, resumed": {
			old: build(versioned(2), held, repairedByBob), new: build(versioned(2), held, repairedByBob, builder.Paused(false)), reason: v1alpha1.ReasonReleaseDenied, message: suspendedMessage,
		},
		"failed repair, resumed and hold removed": {
			old: build(versioned(2), held, repairedByBob), new: build(versioned(2), suspended, repairedByBob), reason: v1alpha1.ReasonReleaseDenied, message: suspendedMessage,
		},
		"release after the repair, resumed": {
			old: build(versioned(3), suspended, repairedByBob, paused), new: build(versioned(3), suspended, repairedByBob), reason: v1alpha1.ReasonReleaseDenied, message: suspendedMessage,
		},
		"repair of an earlier suspension, resumed": {
			old: build(versioned(2), suspended, earlier, paused), new: build(versioned(2), suspended, earlier), reason: v1alpha1.ReasonReleaseDenied, message: suspendedMessage,
		},
		"resumed with a forged annotation": {
			old: build(versioned(2), suspended, paused), new: build(versioned(2), suspended, repairedByBob), skipped: true, reason: v1alpha1.ReasonReleaseDenied, message: suspendedMessage,
		},
		"repair that a person had paused, resumed with another template": {
			old: build(versioned(2), suspended, repairedByBob, paused), new: build(versioned(2), suspended, repairedByBob, image("busybox:3")), reason: v1alpha1.ReasonReleaseDenied,
			message: suspendedMessage,
		},
		"other metadata": {
			old: build(versioned(1), held), new: build(versioned(1), held, label("team", "a")), reason: admission.DecisionAdmitted,
		},
		"repair": {
			old: build(versioned(1), held), new: build(versioned(1), held, repair, image("busybox:2")), reason: v1alpha1.ReasonRepairAdmitted,
		},
		"repair label false": {
			old: build(versioned(1), held), new: build(versioned(1), held, label(v1alpha1.IgnoredSuspendLabel, "false"), image("busybox:2")),
			reason: v1alpha1.ReasonReleaseDenied, message: suspendedMessage,
		},
		"repair label with another value": {
			old: build(versioned(1), held), new: build(versioned(1), held, label(v1alpha1.IgnoredSuspendLabel, "yes"), image("busybox:2")),
			reason: v1alpha1.ReasonRepairAdmitted,
		},
		"repair that replaces the metadata": {
			old: build(versioned(1), held), new: build(repair, image("busybox:2")), reason: v1alpha1.ReasonRepairAdmitted,
		},
		"second repair": {
			old: build(versioned(2), held, repairedByBob), new: build(versioned(2), held, repairedByBob, repair, image("busybox:3")), reason: v1alpha1.ReasonReleaseDenied,
			message: suspendedMessage + ": a repair of this suspension was already admitted; remove the annotation altershield.defense.antgroup.com/bypass to allow another",
		},
		"second repair after the annotation of the first was removed": {
			old: build(versioned(2), held), new: build(versioned(2), held, repair, image("busybox:3")), reason: v1alpha1.ReasonRepairAdmitted,
		},
		"removal of the annotation of a repair": {
			old: build(versioned(2), held, repairedByBob), new: build(versioned(2), held), reason: admission.DecisionAdmitted,
		},
		"removal of the annotation of a repair without an answer of the mutating webhook": {
			old: build(versioned(2), held, repairedByBob), new: build(versioned(2), held), skipped: true, reason: v1alpha1.ReasonReleaseDenied, message: unrecorded,
		},
		"forged annotation of a repair": {
			old: build(versioned(2), held, repairedByBob), new: build(versioned(2), held, forged), skipped: true, reason: v1alpha1.ReasonReleaseDenied, message: unrecorded,
		},
		"removal of the annotation of an earlier repair without an answer of the mutating webhook": {
			old: build(versioned(2), held, earlier), new: build(versioned(2), held), skipped: true, reason: admission.DecisionAdmitted,
		},
		"second repair that another one is allowed for": {
			old: build(versioned(2), held, allowed), new: build(versioned(2), held, allowed, repair, image("busybox:3")), reason: v1alpha1.ReasonRepairAdmitted,
		},
		"second repair that removes the annotation of the first": {
			old: build(versioned(2), held, repairedByBob), new: build(versioned(2), held, repair, image("busybox:3")), reason: v1alpha1.ReasonReleaseDenied,
			message: suspendedMessage + ": a repair of this suspension was already admitted; remove the annotation altershield.defense.antgroup.com/bypass to allow another",
		},
		"rollback": {
			old: build(versioned(2), held), new: build(versioned(2), held, image("busybox:0")), reason: v1alpha1.ReasonRollbackAdmitted,
		},
		"rollback by rollout undo, which replaces all annotations": {
			old: build(versioned(2), held, repairedByBob), new: build(versioned(2), held, image("busybox:0"), func(d *appsv1.Deployment) {
				d.Annotations = build(image("busybox:0"), versioned(1)).Annotations
			}), reason: v1alpha1.ReasonRollbackAdmitted,
		},
		"release, history unknown": {
			old: build(versioned(1), held), new: build(versioned(1), held, image("busybox:0")), unknown: true, reason: v1alpha1.ReasonReleaseDenied,
			message: suspendedMessage + ": Breakwater could not find out whether this version succeeded before: try again",
		},
		"repair without an answer of the mutating webhook": {
			old: build(versioned(1), held), new: build(versioned(1), held, repair, image("busybox:2")), skipped: true, reason: v1alpha1.ReasonReleaseDenied,
			message: unrecorded,
		},
		"forged annotation of another attempt": {
			old: build(versioned(2), held), new: build(versioned(2), held, image("busybox:2"),
				builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: admissiontest.User, Suspend: builder.SuspendedAt, Attempt: 2})),
			skipped: true, reason: v1alpha1.ReasonReleaseDenied, message: suspendedMessage,
		},
		"forged annotation of another user": {
			old: build(versioned(2), held), new: build(versioned(2), held, image("busybox:2"),
				builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: "bob", Suspend: builder.SuspendedAt, Attempt: 3})),
			skipped: true, reason: v1alpha1.ReasonReleaseDenied, message: suspendedMessage,
		},
		"release, blocking off": {
			old: build(versioned(1), held), new: build(versioned(1), held, image("busybox:2")), off: true, reason: admission.DecisionAdmitted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(admissiontest.History{Successes: []string{good}, Unknown: tc.unknown}, !tc.off)
			handle := w.admit
			if tc.skipped {
				handle = w.validateOnly
			}
			answer := handle(t, admissiontest.Request(t, tc.old, tc.new))
			if answer.Decision != tc.reason {
				t.Errorf("decision is %s, want %s", answer.Decision, tc.reason)
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
			if diff := cmp.Diff(suspendedMessage, string(answer.Response.Result.Reason)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func deniedUpdate(t *testing.T) *admissionv1.AdmissionRequest {
	return admissiontest.Request(t, build(versioned(1), held), build(versioned(1), held, image("busybox:2")))
}

func TestADenialHasNoRetryAfter(t *testing.T) {
	result := newFixture(admissiontest.History{}, true).admit(t, deniedUpdate(t)).Response.Result
	if result.Details.RetryAfterSeconds != 0 {
		t.Errorf("retry after %d s", result.Details.RetryAfterSeconds)
	}
	if result.Code != http.StatusForbidden {
		t.Errorf("code %d", result.Code)
	}
}

func TestADenialNamesTheAlternatives(t *testing.T) {
	bad := build(versioned(2), held)
	failed := builder.ChangeWorkload(bad, 2, v1alpha1.ReleaseSuspend)
	failed.Status.DefenseCheckFailPods = []v1alpha1.PodSummary{{Pod: "sleep-a", Message: "find error"}, {Pod: "sleep-b"}}
	good := builder.ChangeWorkload(build(image("busybox:0")), 1, v1alpha1.ReleaseSuccess)
	// A version that was applied at 0 replicas is no way out.
	empty := builder.ChangeWorkload(build(image("busybox:3")), 2, v1alpha1.ReleaseSuccess)
	empty.Status.Conditions = duckv1.Conditions{{Type: v1alpha1.ReleaseJudged, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonNoVerdict}}
	h := admissiontest.History{Known: []*v1alpha1.ChangeWorkload{good, empty, failed}}
	result := newFixture(h, true).admit(t, admissiontest.Request(t, bad, build(versioned(2), held, image("busybox:2")))).Response.Result
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
					"): a rollback to it is admitted during the suspension",
			},
			{
				Type: suspend.CauseAsk,
				Message: "users who may patch changepods/status in namespace default can overrule the verdict of the failed pods; " +
					"operators of Breakwater (namespace altershieldoperator-system) can disable these denials for all workloads: OpsConfigInfo of type isBlockingUp",
			},
		},
	}
	if diff := cmp.Diff(want, result.Details); diff != "" {
		t.Error(diff)
	}
}

// The webhook does not read whether a template is saved.
func TestADenialNamesTheRollbackToASavedVersion(t *testing.T) {
	failed := builder.ChangeWorkload(build(versioned(2), held), 2, v1alpha1.ReleaseSuspend)
	causes := causesOf(t, admissiontest.History{Known: []*v1alpha1.ChangeWorkload{failed}}, build(versioned(2), held), build(versioned(2), held, image("busybox:2")))
	want := metav1.StatusCause{Type: suspend.CauseRollback,
		Message: "if a version that succeeded is saved, `kubectl breakwater rollback deployment/sleep -n default` applies its template, which is admitted during the suspension"}
	if len(causes) != 4 || causes[2] != want {
		t.Errorf("got %+v, want %+v", causes, want)
	}
}

func TestADenialSaysOnlyOfAJudgedPodThatTheCheckFailed(t *testing.T) {
	judged, unjudged := v1alpha1.PodSummary{Pod: "sleep-a", Message: "find error"}, v1alpha1.PodSummary{Pod: "sleep-b", Message: v1alpha1.UnjudgedMessage}
	for name, tc := range map[string]struct {
		pods []v1alpha1.PodSummary
		want string
	}{
		"a judged pod":              {[]v1alpha1.PodSummary{unjudged, judged}, "failed its check: sleep-b"},
		"an unjudged pod":           {[]v1alpha1.PodSummary{unjudged}, "failed its check, or was not judged and counts as failed: sleep-b"},
		"an order, accepted or not": {nil, "failed its check, or was not judged and counts as failed"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := build(versioned(2), held)
			failed := builder.ChangeWorkload(bad, 2, v1alpha1.ReleaseSuspend)
			failed.Status.DefenseCheckFailPods = tc.pods
			h := admissiontest.History{Known: []*v1alpha1.ChangeWorkload{failed}}
			causes := causesOf(t, h, bad, build(versioned(2), held, image("busybox:2")))
			if got := causes[0].Message; !strings.Contains(got, ") "+tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestADenialNamesWhoCanOverruleTheFail(t *testing.T) {
	const operators = "operators of Breakwater (namespace altershieldoperator-system) can disable these denials for all workloads: OpsConfigInfo of type isBlockingUp"
	bad := build(versioned(2), held)
	order := builder.ChangeWorkload(bad, 2, v1alpha1.ReleaseSuspend)
	pods := builder.ChangeWorkload(bad, 2, v1alpha1.ReleaseSuspend)
	pods.Status.DefenseCheckFailPods = []v1alpha1.PodSummary{{Pod: "sleep-a"}}
	former := pods.DeepCopy()
	former.Spec.Attempt = 1
	for name, tc := range map[string]struct {
		known []*v1alpha1.ChangeWorkload
		want  string
	}{
		"a pod failed": {[]*v1alpha1.ChangeWorkload{pods},
			"users who may patch changepods/status in namespace default can overrule the verdict of the failed pods; " + operators},
		"no pod failed": {[]*v1alpha1.ChangeWorkload{order},
			"no pod failed; if the order as a whole failed or is unjudged, users who may patch changeworkloads/status " +
				"in namespace default can pass it (status.orderResult); " + operators},
		"the failed version is unknown":             {nil, operators},
		"a repair replaced the version that failed": {[]*v1alpha1.ChangeWorkload{former}, operators},
	} {
		t.Run(name, func(t *testing.T) {
			causes := causesOf(t, admissiontest.History{Known: tc.known}, bad, build(versioned(2), held, image("busybox:2")))
			if diff := cmp.Diff(tc.want, causes[len(causes)-1].Message); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestADenialOfASecondRepairNamesTheUserOfTheFirst(t *testing.T) {
	const want = "a repair of this suspension was already admitted for bob; " +
		"`kubectl annotate deployment sleep -n default altershield.defense.antgroup.com/bypass-` allows another"
	causes := causesOf(t, admissiontest.History{}, build(versioned(2), held, repairedByBob), build(versioned(2), held, repairedByBob, repair, image("busybox:3")))
	if diff := cmp.Diff(want, causes[1].Message); diff != "" {
		t.Error(diff)
	}
}

// The API server cuts the warnings of a response if all have more than 4096 characters.
func TestTheWarningsOfADenialAreNotCutByTheAPIServer(t *testing.T) {
	const user = "system:serviceaccount:argocd:argocd-application-controller"
	used := builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: user, Suspend: builder.SuspendedAt, Attempt: 2})
	long := strings.Repeat("n", 63)
	placed := func(d *appsv1.Deployment) { d.Namespace = long }
	bad := build(builder.Name(long), placed, versioned(2), held, used)
	failed := builder.ChangeWorkload(bad, 2, v1alpha1.ReleaseSuspend)
	for range 3 {
		failed.Status.DefenseCheckFailPods = append(failed.Status.DefenseCheckFailPods, v1alpha1.PodSummary{Pod: long, Message: strings.Repeat("m", 1024)})
	}
	w := newFixture(admissiontest.History{Known: []*v1alpha1.ChangeWorkload{failed}}, true)
	w.settings.Bypass = v1alpha1.BypassAuthorized
	response := w.admit(t, admissiontest.Request(t, bad, build(builder.Name(long), placed, versioned(2), held, used, repair, image("busybox:3")))).Response
	if n := len(strings.Join(response.Warnings, "")); n > 4096 {
		t.Errorf("the warnings have %d bytes", n)
	}
	for i, c := range response.Result.Details.Causes[1:] {
		if diff := cmp.Diff(c.Message, response.Warnings[i+1]); diff != "" {
			t.Error(diff)
		}
	}
}

func TestADenialOfAUsersSuspensionStatesThatTheFailedVersionIsUnknown(t *testing.T) {
	// The failed version still exists for some time after its repair succeeded.
	failed, repair := &v1alpha1.ChangeWorkload{}, &v1alpha1.ChangeWorkload{}
	failed.Spec.Attempt, failed.Status.Phase = 1, v1alpha1.ReleaseSuspend
	repair.Spec.Attempt, repair.Status.Phase = 2, v1alpha1.ReleaseSuccess
	for value, tc := range map[string]struct {
		known []*v1alpha1.ChangeWorkload
		shown string
	}{"holidays": {nil, "holidays"}, "": {nil, "true"}, "repaired": {[]*v1alpha1.ChangeWorkload{failed, repair}, "repaired"}} {
		byHand := label(v1alpha1.SuspendLabel, value)
		causes := causesOf(t, admissiontest.History{Known: tc.known}, build(versioned(2), byHand), build(versioned(2), byHand, image("busybox:2")))
		want := "suspended by label " + v1alpha1.SuspendLabel + "=" + tc.shown + "; the failed version is unknown: the label was set by hand, or the ChangeWorkload was deleted"
		if diff := cmp.Diff(want, causes[0].Message); diff != "" {
			t.Error(diff)
		}
	}
}

func TestADenialOfTheEndOfASuspensionSaysWhatEndsIt(t *testing.T) {
	const ends = "the suspend label and the hold cannot be changed: the suspension ends with the success of a repair or rollback; "
	unlabelled := build(versioned(2), held)
	delete(unlabelled.Labels, v1alpha1.SuspendLabel)
	for name, tc := range map[string]struct {
		after *appsv1.Deployment
		want  bool
	}{
		"the label is removed": {unlabelled, true},
		"a release":            {build(versioned(2), held, image("busybox:2")), false},
	} {
		causes := causesOf(t, admissiontest.History{}, build(versioned(2), held), tc.after)
		if got := causes[1].Message; strings.HasPrefix(got, ends) != tc.want {
			t.Errorf("%s: the warning is %q", name, got)
		}
	}
}

func TestADenialIsReported(t *testing.T) {
	w := newFixture(admissiontest.History{}, true)
	w.admit(t, deniedUpdate(t))
	if e, want := w.event(), "Warning ReleaseDenied update by alice: "+suspendedMessage; e != want {
		t.Errorf("Event is %q, want %q", e, want)
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
	if data.User != admissiontest.User || data.Message != suspendedMessage {
		t.Errorf("sent %+v", data)
	}
}

func TestTheDenialOfADryRunIsNotReported(t *testing.T) {
	w := newFixture(admissiontest.History{}, true)
	req := deniedUpdate(t)
	req.DryRun = new(true)
	if w.admit(t, req).Response.Allowed {
		t.Error("admitted")
	}
	if len(w.recorder.Events) > 0 || len(w.sent.Sent()) > 0 {
		t.Error("the denial was reported")
	}
}

func TestALargeDeploymentIsDenied(t *testing.T) {
	huge := builder.Annotation("note", strings.Repeat("x", 1<<20))
	req := admissiontest.Request(t, build(versioned(1), held, huge), build(versioned(1), held, huge, image("busybox:2")))
	if got := newFixture(admissiontest.History{}, true).admit(t, req).Response.Result.Message; got != suspendedMessage {
		t.Errorf("message is %q", got)
	}
}

func TestALongNameIsNotTruncated(t *testing.T) {
	long := builder.Name(strings.Repeat("n", 253))
	req := admissiontest.Request(t, build(versioned(1), held, long), build(versioned(1), held, long, image("busybox:2")))
	want := "deployment " + strings.Repeat("n", 253) + " is suspended"
	if got := newFixture(admissiontest.History{}, true).admit(t, req).Response.Result.Message; got != want {
		t.Errorf("message is %q", got)
	}
}

func TestOtherOperationsAreAdmitted(t *testing.T) {
	w := newFixture(admissiontest.History{}, true)
	create := admissiontest.Request(t, nil, build(held))
	scale := deniedUpdate(t)
	scale.SubResource = "scale"
	for _, req := range []*admissionv1.AdmissionRequest{create, scale} {
		if !w.validating.Admit(t.Context(), req).Response.Allowed {
			t.Errorf("denied %s %s", req.Operation, req.SubResource)
		}
	}
}

func TestAMalformedUpdateIsDenied(t *testing.T) {
	req := deniedUpdate(t)
	req.OldObject.Raw = []byte("{")
	if answer := newFixture(admissiontest.History{}, true).validating.Admit(t.Context(), req); answer.Response.Allowed {
		t.Error("admitted")
	}
}

func TestABypassRequiresTheVerbBypass(t *testing.T) {
	allowed := builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: "bob", Suspend: builder.SuspendedAt, Attempt: 2, AnotherRepair: true})
	old := builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: "bob", Suspend: "1600000000", Attempt: 2})
	good := builder.Version(build(image("busybox:0")))
	const (
		removal = suspendedMessage + `: the removal of annotation altershield.defense.antgroup.com/bypass (it allows another repair) requires the verb "bypass" on ` +
			"changeworkloads.app.ops.cloud.alipay.com in namespace default, " +
			"which alice does not have (no RBAC); an administrator of the namespace can grant ClusterRole breakwater-bypass"
		lacking = suspendedMessage + `: a repair requires the verb "bypass" on changeworkloads.app.ops.cloud.alipay.com in namespace default, ` +
			"which alice does not have (no RBAC); an administrator of the namespace can grant ClusterRole breakwater-bypass"
		unknown = suspendedMessage + `: a repair requires the verb "bypass" on changeworkloads.app.ops.cloud.alipay.com in namespace default; ` +
			"Breakwater could not check whether alice has this right: too slow; try again"
	)
	for name, tc := range map[string]struct {
		old, new *appsv1.Deployment
		answer   suspend.Authorization
		recorded bool // bypass is Recorded
		off      bool // blocking is off
		user     string
		dry      bool
		checked  bool // the right is checked
		message  string
	}{
		"repair with the verb":                                {old: build(versioned(1), held), new: build(versioned(1), held, repair, image("busybox:2")), answer: suspend.Authorization{Allowed: true}, checked: true},
		"repair without the verb":                             {old: build(versioned(1), held), new: build(versioned(1), held, repair, image("busybox:2")), answer: suspend.Authorization{Reason: "no RBAC"}, checked: true, message: lacking},
		"repair, check failed":                                {old: build(versioned(1), held), new: build(versioned(1), held, repair, image("busybox:2")), answer: suspend.Authorization{Err: errors.New("too slow")}, checked: true, message: unknown},
		"repair, check allowed and failed":                    {old: build(versioned(1), held), new: build(versioned(1), held, repair, image("busybox:2")), answer: suspend.Authorization{Allowed: true, Err: errors.New("too slow")}, checked: true, message: unknown},
		"dry run of a repair":                                 {dry: true, old: build(versioned(1), held), new: build(versioned(1), held, repair, image("busybox:2")), answer: suspend.Authorization{Reason: "no RBAC"}, checked: true, message: lacking},
		"removal of the repair's annotation without the verb": {old: build(versioned(2), held, repairedByBob), new: build(versioned(2), held), answer: suspend.Authorization{Reason: "no RBAC"}, checked: true, message: removal},
		"removal of the repair's annotation with the verb":    {old: build(versioned(2), held, repairedByBob), new: build(versioned(2), held), answer: suspend.Authorization{Allowed: true}, checked: true},
		"removal of the annotation of a repair again":         {old: build(versioned(2), held, allowed), new: build(versioned(2), held)},
		"removal of an earlier suspension's annotation":       {old: build(versioned(2), held, old), new: build(versioned(2), held)},
		"rollback":                   {old: build(versioned(2), held), new: build(versioned(2), held, image("busybox:0"))},
		"release":                    {old: build(versioned(1), held), new: build(versioned(1), held, image("busybox:2")), message: suspendedMessage},
		"other metadata":             {old: build(versioned(1), held), new: build(versioned(1), held, label("team", "a"))},
		"repair, bypass is Recorded": {recorded: true, old: build(versioned(1), held), new: build(versioned(1), held, repair, image("busybox:2"))},
		"removal of the repair's annotation, bypass is Recorded": {recorded: true, old: build(versioned(2), held, repairedByBob), new: build(versioned(2), held)},
		"repair, blocking off":                       {off: true, old: build(versioned(1), held), new: build(versioned(1), held, repair, image("busybox:2"))},
		"release by the controller":                  {user: v1alpha1.ControllerUser, old: build(versioned(1), held), new: build(versioned(1), held, image("busybox:2"))},
		"repair of a workload that is not suspended": {old: build(versioned(1)), new: build(versioned(1), repair, image("busybox:2"))},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(admissiontest.History{Successes: []string{good}}, !tc.off)
			w.rights.answer = tc.answer
			if !tc.recorded {
				w.settings.Bypass = v1alpha1.BypassAuthorized
			}
			req := admissiontest.Request(t, tc.old, tc.new)
			req.DryRun = &tc.dry
			if tc.user != "" {
				req.UserInfo.Username = tc.user
			}
			answer := w.admit(t, req)
			if (len(w.rights.checked) > 0) != tc.checked {
				t.Errorf("checked %v", w.rights.checked)
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
