package version

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/admissiontest"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

var (
	build     = builder.StoredDeployment
	versioned = builder.Versioned
	image     = builder.Image
	label     = builder.Label
	annotated = builder.Annotation
	paused    = builder.Paused
)

const (
	alice, since   = admissiontest.User, builder.SuspendedAt
	nextSuspension = "1800000000"
	pausedBefore   = `{"attempt":1,"former":true,"unjudged":true}`
)

var (
	held, bare     = builder.Held, builder.Bare
	suspended      = label(v1alpha1.SuspendLabel, since)
	nextSuspended  = label(v1alpha1.SuspendLabel, nextSuspension)
	frozenEmpty    = label(v1alpha1.SuspendLabel, "")
	asksRepair     = label(v1alpha1.IgnoredSuspendLabel, "true")
	holdOfUnjudged = annotated(v1alpha1.HoldAnnotation, `{"attempt":1,"unjudged":true}`)
	healed         = rolledBackBecause(v1alpha1.RollbackSelfHealing, 3)
	ended          = builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: alice, Suspend: since, Attempt: 2, Ended: true})
	anotherRepair  = builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: alice, Suspend: since, Attempt: 2, Freeze: "holidays", AnotherRepair: true})
	keepsFreeze    = builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRollback, User: v1alpha1.ControllerUser, Suspend: since, Attempt: 3, Freeze: since})
	keepsEmpty     = builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRollback, User: v1alpha1.ControllerUser, Attempt: 3, Freeze: "true"})
)

func newHandler(successes ...string) *Handler {
	return &Handler{
		Kind: workload.Deployment, Settings: settings.Default, History: admissiontest.History{Successes: successes},
		Clock: clocktesting.NewFakePassiveClock(builder.Now),
	}
}

func repair(attempt int64) builder.Option {
	return builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: alice, Suspend: since, Attempt: attempt})
}

func rollback(user string, attempt int64) builder.Option {
	return builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRollback, User: user, Suspend: since, Attempt: attempt})
}

// frozen is the record of a bypass of a workload that a person had suspended before its check failed.
func frozen(kind v1alpha1.BypassKind, attempt int64) builder.Option {
	return builder.Bypassed(v1alpha1.Bypass{Kind: kind, User: alice, Suspend: since, Attempt: attempt, Freeze: "holidays"})
}

func unjudged(d *appsv1.Deployment) {
	paused(true)(d)
	holdOfUnjudged(d)
}

// rolledBack is the record of a rollback by Breakwater.
func rolledBack(attempt int64) builder.Option {
	return annotated(v1alpha1.RollbackAnnotation, fmt.Sprintf(`{"attempt":%d}`, attempt))
}

// rolledBackBecause is the record of a rollback of a kind.
func rolledBackBecause(kind v1alpha1.RollbackKind, attempt int64) builder.Option {
	return annotated(v1alpha1.RollbackAnnotation, fmt.Sprintf(`{"kind":%q,"attempt":%d}`, kind, attempt))
}

// requested is a request to roll back an attempt.
func requested(user string, attempt int64) builder.Option {
	return annotated(v1alpha1.RollbackRequestAnnotation, fmt.Sprintf(`{"user":%q,"attempt":%d}`, user, attempt))
}

// applied records a manifest of kubectl apply.
func applied(manifest string) builder.Option {
	return annotated(corev1.LastAppliedConfigAnnotation, manifest)
}

// owns records the fields of a server-side apply.
func owns(fields string) builder.Option {
	return func(d *appsv1.Deployment) {
		d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "argocd", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}}}
	}
}

// resumedAfterApply records that a hold wrote the pause after the last kubectl apply.
func resumedAfterApply(d *appsv1.Deployment) {
	d.ManagedFields = []metav1.ManagedFieldsEntry{
		by("kubectl", 5, `{"f:metadata":{"f:annotations":{"f:`+corev1.LastAppliedConfigAnnotation+`":{}}}}`),
		by("breakwater-hold", 6, `{"f:spec":{"f:paused":{}}}`),
	}
}

// releaseCase is an update, or a creation if there is no old object, and the object and the decision of the webhook.
type releaseCase struct {
	old      *appsv1.Deployment
	new      *appsv1.Deployment
	user     string
	good     string // a version that succeeded
	want     *appsv1.Deployment
	decision string
}

func checkReleases(t *testing.T, cases map[string]releaseCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := admissiontest.Request(t, tc.old, tc.new)
			if tc.user != "" {
				req.UserInfo.Username = tc.user
			}
			answer := newHandler(tc.good).Admit(t.Context(), req)
			if !answer.Response.Allowed {
				t.Fatalf("denied: %v", answer.Response.Result)
			}
			got := admissiontest.Apply(t, req, answer.Response)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if answer.Decision != tc.decision {
				t.Errorf("decision is %s, want %s", answer.Decision, tc.decision)
			}

			// The API server may call the webhook again with the result.
			again := newHandler(tc.good).Admit(t.Context(), req)
			if len(again.Response.Patch) > 0 {
				t.Errorf("a second call also writes %s", again.Response.Patch)
			}
		})
	}
}

func TestAnotherMutatingWebhookThatChangesTheTemplateMakesAnotherVersionAndNotAnotherAttempt(t *testing.T) {
	old := build(versioned(1), builder.Held)
	req := admissiontest.Request(t, old, build(versioned(1), builder.Held, asksRepair, image("busybox:2")))
	d := admissiontest.Apply(t, req, newHandler().Admit(t.Context(), req).Response)
	image("mirror/busybox:2")(d)
	req.Object.Raw = builder.JSON(t, d)
	got := admissiontest.Apply(t, req, newHandler().Admit(t.Context(), req).Response)
	want := build(image("mirror/busybox:2"), versioned(2), repair(2), suspended)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

func TestThePatchChangesOnlyOurFields(t *testing.T) {
	old := build(versioned(1), builder.Held)
	repair := build(versioned(1), builder.Held, asksRepair, image("busybox:2"))
	// Server-side apply: the API server keeps the managed fields.
	repair.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply,
		FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{}}`)}}}
	answer := newHandler().Admit(t.Context(), admissiontest.Request(t, old, repair))
	var ops []struct{ Op, Path string }
	if err := json.Unmarshal(answer.Response.Patch, &ops); err != nil {
		t.Fatal(err)
	}
	for _, op := range ops {
		if !strings.HasPrefix(op.Path, "/metadata/labels") && !strings.HasPrefix(op.Path, "/metadata/annotations") && op.Path != "/spec/paused" {
			t.Errorf("writes %s", op.Path)
		}
	}
	if *answer.Response.PatchType != admissionv1.PatchTypeJSONPatch {
		t.Errorf("is a %s", *answer.Response.PatchType)
	}
}

func TestALargeDeploymentGetsItsRelease(t *testing.T) {
	huge := annotated("note", strings.Repeat("x", 1<<20))
	req := admissiontest.Request(t, build(versioned(1), huge), build(versioned(1), huge, image("busybox:2")))
	answer := newHandler().Admit(t.Context(), req)
	if size := len(answer.Response.Patch); size > 1000 {
		t.Errorf("the patch has %d bytes", size)
	}
	if diff := cmp.Diff(build(huge, image("busybox:2"), versioned(2)), admissiontest.Apply(t, req, answer.Response)); diff != "" {
		t.Error(diff)
	}
}

func TestAnUnknownFieldIsPartOfTheTemplate(t *testing.T) {
	old := build(versioned(1))
	req := admissiontest.Request(t, old, old)
	req.Object.Raw = []byte(strings.Replace(string(req.Object.Raw), `"image":"busybox:1"`, `"image":"busybox:1","fromTheFuture":true`, 1))
	answer := newHandler().Admit(t.Context(), req)
	if diff := cmp.Diff(build(versioned(2)), admissiontest.Apply(t, req, answer.Response)); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(string(req.Object.Raw), "fromTheFuture") {
		t.Error("the field was lost")
	}
}

func TestADryRunGetsTheSameAnswer(t *testing.T) {
	req := admissiontest.Request(t, nil, build())
	dry := admissiontest.Request(t, nil, build())
	dry.DryRun = new(true)
	if diff := cmp.Diff(newHandler().Admit(t.Context(), req), newHandler().Admit(t.Context(), dry)); diff != "" {
		t.Error(diff)
	}
}

func TestAnUnparsableWorkloadIsAdmittedUnchanged(t *testing.T) {
	req := admissiontest.Request(t, nil, build())
	req.Object.Raw = []byte("{")
	answer := newHandler().Admit(t.Context(), req)
	if !answer.Response.Allowed || answer.Response.Patch != nil || answer.Decision != admission.DecisionError {
		t.Errorf("got %+v", answer)
	}
}

func TestASubresourceIsNotChanged(t *testing.T) {
	req := admissiontest.Request(t, build(), build())
	req.SubResource = "scale"
	if answer := newHandler().Admit(t.Context(), req); answer.Response.Patch != nil {
		t.Errorf("wrote %s", answer.Response.Patch)
	}
}

func TestARepairLabelWithoutEffectCausesAWarning(t *testing.T) {
	const key = v1alpha1.IgnoredSuspendLabel
	running, held := build(versioned(1)), build(versioned(1), builder.Held)
	repair, noRepair, next := label(key, "true"), label(key, "false"), image("busybox:2")
	for name, tc := range map[string]struct {
		old, new *appsv1.Deployment
		want     []string
	}{
		"repair": {held, build(versioned(1), builder.Held, repair, next), nil},
		"without a template change": {held, build(versioned(1), builder.Held, repair), []string{
			"deployment sleep is suspended, and this update does not change its pod template: label " + key + " was removed without effect"}},
		"false":                {held, build(versioned(1), builder.Held, noRepair, next), []string{`label ` + key + `: "false" requests no repair: write "true"`}},
		"false, not suspended": {running, build(versioned(1), noRepair, next), nil},
	} {
		answer := newHandler().Admit(t.Context(), admissiontest.Request(t, tc.old, tc.new))
		if diff := cmp.Diff(tc.want, answer.Response.Warnings); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestTheTimeOfABypassIsSetByTheWebhookAndKeptOnReinvocation(t *testing.T) {
	held, update := build(versioned(1), builder.Held), build(versioned(1), builder.Held, asksRepair, image("busybox:2"))
	bypassed := func(at time.Time) builder.Option {
		return builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: alice, Suspend: since, Attempt: 2, Time: metav1.NewTime(at)})
	}
	for name, tc := range map[string]struct{ said, want time.Time }{
		"a second later": {builder.Now.Add(-time.Second), builder.Now.Add(-time.Second)},
		"an hour later":  {builder.Now.Add(-time.Hour), builder.Now},
		"in the future":  {builder.Now.Add(time.Hour), builder.Now},
	} {
		t.Run(name, func(t *testing.T) {
			bypassed(tc.said)(update)
			req := admissiontest.Request(t, held, update)
			got := v1alpha1.BypassOf(admissiontest.Apply(t, req, newHandler().Admit(t.Context(), req).Response).Annotations)
			if got == nil || !got.Time.Time.Equal(tc.want) {
				t.Errorf("got %v, want %s", got, tc.want)
			}
		})
	}
}

func TestALostReleaseAnnotationIsRestoredFromTheHistory(t *testing.T) {
	bare, next := build(builder.Bare), build(builder.Bare, image("busybox:2"))
	for name, tc := range map[string]struct {
		object *appsv1.Deployment
		want   *appsv1.Deployment
	}{
		"of what runs still":             {bare, build(builder.Bare, versioned(4))},
		"of what was replaced meanwhile": {next, build(builder.Bare, image("busybox:2"), versioned(5))},
	} {
		t.Run(name, func(t *testing.T) {
			s := newHandler()
			s.History = admissiontest.History{Known: []*v1alpha1.ChangeWorkload{
				builder.ChangeWorkload(build(image("busybox:0")), 3, v1alpha1.ReleaseSuccess),
				builder.ChangeWorkload(bare, 4, v1alpha1.ReleaseRunning),
			}}
			req := admissiontest.Request(t, tc.object, tc.object)
			req.UserInfo.Username = v1alpha1.ControllerUser
			got := admissiontest.Apply(t, req, s.Admit(t.Context(), req).Response)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// kubectl rollout undo copies the annotations of an earlier ReplicaSet, and keeps the labels. The undo of a StatefulSet
// or DaemonSet changes only the template.
func TestAnUndoThatTheWebhookMissedIsTheNextAttempt(t *testing.T) {
	baseline, failed, current := build(), build(image("busybox:2")), build(image("busybox:3"))
	currentLabel := label(v1alpha1.VersionKey, builder.Version(current))
	currentRelease := func(d *appsv1.Deployment) {
		currentLabel(d)
		annotated(v1alpha1.VersionKey, builder.Version(current))(d)
		annotated(v1alpha1.AttemptAnnotation, "3")(d)
	}
	undone := build(image("busybox:2"), versioned(2), rolledBack(2), currentLabel)
	for name, tc := range map[string]struct {
		object  *appsv1.Deployment
		byUser  bool
		updated *appsv1.Deployment // unless it is object
		want    *appsv1.Deployment
	}{
		"to a failed release":        {object: undone, want: build(image("busybox:2"), versioned(4), rolledBack(2))},
		"to the baseline":            {object: build(versioned(0), currentLabel), want: build(versioned(4))},
		"of a StatefulSet":           {object: build(image("busybox:2"), currentRelease), want: build(image("busybox:2"), versioned(4))},
		"an update of a user":        {object: undone, byUser: true, want: build(image("busybox:2"), versioned(4), rolledBack(2))},
		"a template of a user":       {object: undone, byUser: true, updated: build(image("busybox:4"), versioned(2), rolledBack(2), currentLabel), want: build(image("busybox:4"), versioned(4), rolledBack(2))},
		"a saved manifest of it":     {object: build(image("busybox:2"), versioned(2)), want: build(image("busybox:2"), versioned(4))},
		"a repeated readmission":     {object: build(image("busybox:2"), versioned(4)), want: build(image("busybox:2"), versioned(4))},
		"only the annotations of it": {object: build(image("busybox:3"), currentRelease, annotated(v1alpha1.AttemptAnnotation, "2")), want: build(image("busybox:3"), versioned(3))},
	} {
		for _, dryRun := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dry run %v", name, dryRun), func(t *testing.T) {
				s := newHandler()
				s.History = admissiontest.History{Known: []*v1alpha1.ChangeWorkload{
					builder.ChangeWorkload(baseline, 0, v1alpha1.ReleaseSuccess),
					builder.ChangeWorkload(current, 3, v1alpha1.ReleaseRunning),
					builder.ChangeWorkload(failed, 2, v1alpha1.ReleaseFailed),
				}}
				if tc.updated == nil {
					tc.updated = tc.object
				}
				req := admissiontest.Request(t, tc.object, tc.updated)
				req.DryRun = &dryRun
				if !tc.byUser {
					req.UserInfo.Username = v1alpha1.ControllerUser
				}
				got := admissiontest.Apply(t, req, s.Admit(t.Context(), req).Response)
				if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Error(diff)
				}
				if again := s.Admit(t.Context(), req); len(again.Response.Patch) > 0 {
					t.Errorf("a second call also writes %s", again.Response.Patch)
				}
			})
		}
	}
}
