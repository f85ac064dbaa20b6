package version

import (
	"encoding/json"
	"fmt"
	"math"
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

const alice, since = admissiontest.User, builder.SuspendedAt

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

func TestTheMutatingWebhookRecordsTheRelease(t *testing.T) {
	held, bare := builder.Held, builder.Bare
	asksRepair := label(v1alpha1.IgnoredSuspendLabel, "true")
	holdOfUnjudged := annotated(v1alpha1.HoldAnnotation, `{"attempt":1,"unjudged":true}`)
	unjudged := func(d *appsv1.Deployment) {
		paused(true)(d)
		holdOfUnjudged(d)
	}
	const pausedBefore = `{"attempt":1,"former":true,"unjudged":true}`
	// A person had suspended the workload before its check failed.
	frozen := func(kind v1alpha1.BypassKind, attempt int64) builder.Option {
		return builder.Bypassed(v1alpha1.Bypass{Kind: kind, User: alice, Suspend: since, Attempt: attempt, Freeze: "holidays"})
	}
	suspended := label(v1alpha1.SuspendLabel, since)
	again := builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: alice, Suspend: since, Attempt: 2, Freeze: "holidays", AnotherRepair: true})
	ended := builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: alice, Suspend: since, Attempt: 2, Ended: true})
	healed := rolledBackBecause(v1alpha1.RollbackSelfHealing, 3)
	keepsFreeze := builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRollback, User: v1alpha1.ControllerUser, Suspend: since, Attempt: 3, Freeze: since})
	frozenEmpty := label(v1alpha1.SuspendLabel, "")
	keepsEmpty := builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRollback, User: v1alpha1.ControllerUser, Attempt: 3, Freeze: "true"})
	long := strings.Repeat("n", 253)
	for name, tc := range map[string]struct {
		old      *appsv1.Deployment
		new      *appsv1.Deployment
		user     string
		good     string // a version that succeeded
		want     *appsv1.Deployment
		decision string
	}{
		"created": {
			new: build(), want: build(versioned(1)), decision: Released,
		},
		"created without labels and annotations": {
			new: build(bare), want: build(bare, versioned(1)), decision: Released,
		},
		"created with generateName": {
			new:  build(builder.Name(""), func(d *appsv1.Deployment) { d.GenerateName = "sleep-" }),
			want: build(builder.Name(""), func(d *appsv1.Deployment) { d.GenerateName = "sleep-" }, versioned(1)), decision: Released,
		},
		"created with a name of 253 characters": {
			new: build(builder.Name(long)), want: build(builder.Name(long), versioned(1)), decision: Released,
		},
		"created with a forged release": {
			new:  build(label(v1alpha1.VersionKey, "mine"), annotated(v1alpha1.VersionKey, "mine"), annotated(v1alpha1.AttemptAnnotation, "77")),
			want: build(versioned(1)), decision: Released,
		},
		"created from a saved manifest": {
			new:  build(versioned(5), held, repair(5), asksRepair, label(v1alpha1.DefenseStatusLabel, "processed")),
			want: build(versioned(1)), decision: Released,
		},
		"created from a saved manifest, paused before it was held": {
			new:  build(held, annotated(v1alpha1.HoldAnnotation, `{"attempt":1,"former":true}`)),
			want: build(versioned(1), paused(true)), decision: Released,
		},
		"created from a saved manifest, rolled back": {
			new: build(versioned(2), rolledBack(2)), want: build(versioned(1)), decision: Released,
		},
		"created with a suspend label of a user": {
			new: build(label(v1alpha1.SuspendLabel, "holidays")), want: build(label(v1alpha1.SuspendLabel, "holidays"), versioned(1)), decision: Released,
		},
		"created from a saved manifest, suspended and repaired": {
			new: build(label(v1alpha1.SuspendLabel, since), repair(2)), want: build(versioned(1)), decision: Released,
		},
		"created paused by a user": {
			new: build(paused(true)), want: build(versioned(1), paused(true)), decision: Released,
		},
		"created from a saved manifest with a malformed hold": {
			new: build(held, annotated(v1alpha1.HoldAnnotation, "{")), want: build(versioned(1)), decision: Released,
		},

		"template changed": {
			old: build(versioned(1)), new: build(versioned(1), image("busybox:2")),
			want: build(image("busybox:2"), versioned(2)), decision: Released,
		},
		"older than the opt-in, template changed": {
			old: build(bare), new: build(bare, image("busybox:2")),
			want: build(bare, image("busybox:2"), versioned(1)), decision: Released,
		},
		"older than the opt-in, template unchanged": {
			old: build(), new: build(label("team", "a")),
			want: build(label("team", "a"), versioned(0)), decision: Baselined,
		},
		"older than the opt-in, readmission": {
			old: build(), new: build(), user: v1alpha1.ControllerUser, want: build(versioned(0)), decision: Baselined,
		},
		"missed release, readmission": {
			old: build(versioned(1), image("busybox:2")), new: build(versioned(1), image("busybox:2")), user: v1alpha1.ControllerUser,
			want: build(image("busybox:2"), versioned(2)), decision: Released,
		},
		"missed release, update without a change by another user": {
			old: build(versioned(1), image("busybox:2")), new: build(versioned(1), image("busybox:2")),
			want: build(versioned(1), image("busybox:2")), decision: Kept,
		},
		"malformed attempt, template unchanged": {
			old: build(versioned(1), annotated(v1alpha1.AttemptAnnotation, "many")), new: build(versioned(1), annotated(v1alpha1.AttemptAnnotation, "many")),
			want: build(versioned(0)), decision: Baselined,
		},
		"malformed attempt, template changed": {
			old: build(versioned(1), annotated(v1alpha1.AttemptAnnotation, "-3")), new: build(versioned(1), annotated(v1alpha1.AttemptAnnotation, "-3"), image("busybox:2")),
			want: build(image("busybox:2"), versioned(1)), decision: Released,
		},
		"attempt that no workload reaches, template changed": {
			old: build(versioned(math.MaxInt64)), new: build(versioned(math.MaxInt64), image("busybox:2")),
			want: build(image("busybox:2"), versioned(1)), decision: Released,
		},
		"attempt that no workload reaches, template unchanged": {
			old: build(versioned(math.MaxInt64)), new: build(versioned(math.MaxInt64)),
			want: build(versioned(0)), decision: Baselined,
		},
		"repair after the highest attempt": {
			old: build(versioned(math.MaxInt32), held), new: build(versioned(math.MaxInt32), held, asksRepair, image("busybox:2")),
			want: build(image("busybox:2"), versioned(1), repair(1), label(v1alpha1.SuspendLabel, since)), decision: v1alpha1.ReasonRepairAdmitted,
		},
		"malformed version": {
			old: build(versioned(1), annotated(v1alpha1.VersionKey, "../x")), new: build(versioned(1), annotated(v1alpha1.VersionKey, "../x")),
			want: build(versioned(0)), decision: Baselined,
		},
		"label differs from the annotation": {
			old: build(versioned(3), label(v1alpha1.VersionKey, "mine")), new: build(versioned(3), label(v1alpha1.VersionKey, "mine")),
			want: build(versioned(3)), decision: Kept,
		},
		"release changed by a user": {
			old:  build(versioned(3)),
			new:  build(label(v1alpha1.VersionKey, "mine"), annotated(v1alpha1.VersionKey, "mine"), annotated(v1alpha1.AttemptAnnotation, "1"), repair(1)),
			want: build(versioned(3)), decision: Kept,
		},
		"hold of an unjudged release removed by a replace": {
			old: build(versioned(1), unjudged), new: build(bare), want: build(bare, versioned(1), unjudged), decision: Kept,
		},
		"hold of an unjudged release removed by a replace, repeated call": {
			old: build(versioned(1), unjudged), new: build(bare, versioned(1), unjudged), want: build(bare, versioned(1), unjudged), decision: Kept,
		},
		"hold of an unjudged release removed by a replace, resumed before": {
			old: build(versioned(1), unjudged, paused(false)), new: build(bare), want: build(bare, versioned(1), holdOfUnjudged), decision: Kept,
		},
		"hold of an unjudged release removed by a replace, paused before it was held": {
			old: build(versioned(1), paused(true), annotated(v1alpha1.HoldAnnotation, pausedBefore)), new: build(bare),
			want: build(bare, versioned(1), annotated(v1alpha1.HoldAnnotation, pausedBefore)), decision: Kept,
		},
		"hold of an unjudged release removed and resumed by a user": {
			old: build(versioned(1), unjudged), new: build(versioned(1)), want: build(versioned(1), holdOfUnjudged), decision: Kept,
		},
		"hold of an unjudged release removed by a user": {
			old: build(versioned(1), unjudged), new: build(versioned(1), paused(true)), want: build(versioned(1), unjudged), decision: Kept,
		},
		"hold of an unjudged release ended by the controller": {
			old: build(versioned(1), unjudged), new: build(versioned(1)), user: v1alpha1.ControllerUser, want: build(versioned(1)), decision: Kept,
		},
		"release removed by a replace": {
			old: build(versioned(3)), new: build(bare), want: build(bare, versioned(3)), decision: Kept,
		},
		"bypass annotation changed by a user": {
			old: build(versioned(3), repair(3)), new: build(versioned(3), repair(99)), want: build(versioned(3), repair(3)), decision: Kept,
		},
		"bypass annotation removed by a user": {
			old: build(versioned(3), repair(3)), new: build(versioned(3)), want: build(versioned(3)), decision: Kept,
		},
		"bypass annotation removed by a user while a repair runs": {
			old: build(versioned(2), suspended, frozen(v1alpha1.BypassRepair, 2)), new: build(versioned(2), suspended),
			want: build(versioned(2), suspended, again), decision: Kept,
		},
		"bypass annotation removed by a user while a repair runs, repeated call": {
			old: build(versioned(2), suspended, frozen(v1alpha1.BypassRepair, 2)), new: build(versioned(2), suspended, again),
			want: build(versioned(2), suspended, again), decision: Kept,
		},
		"bypass annotation removed by a user a second time": {
			old: build(versioned(2), suspended, again), new: build(versioned(2), suspended), want: build(versioned(2), suspended, again), decision: Kept,
		},
		"bypass annotation changed by a user while a repair runs": {
			old: build(versioned(2), suspended, frozen(v1alpha1.BypassRepair, 2)), new: build(versioned(2), suspended, repair(2)),
			want: build(versioned(2), suspended, frozen(v1alpha1.BypassRepair, 2)), decision: Kept,
		},
		"bypass annotation of an earlier suspension removed by a user": {
			old: build(versioned(2), label(v1alpha1.SuspendLabel, "1800000000"), repair(2)), new: build(versioned(2), label(v1alpha1.SuspendLabel, "1800000000")),
			want: build(versioned(2), label(v1alpha1.SuspendLabel, "1800000000")), decision: Kept,
		},
		"bypass annotation and suspension removed by a user": {
			old: build(versioned(2), suspended, repair(2)), new: build(versioned(2)), want: build(versioned(2)), decision: LeftToValidatingWebhook,
		},
		"suspension ended by the controller": {
			old: build(versioned(2), suspended, repair(2)), new: build(versioned(2), ended), user: v1alpha1.ControllerUser,
			want: build(versioned(2), ended), decision: Kept,
		},
		"suspension ended by the controller, which restores that of a person": {
			old: build(versioned(2), suspended, repair(2)), new: build(versioned(2), label(v1alpha1.SuspendLabel, "holidays"), ended), user: v1alpha1.ControllerUser,
			want: build(versioned(2), label(v1alpha1.SuspendLabel, "holidays"), ended), decision: Kept,
		},
		"suspension of a repair again ended by the controller": {
			old: build(versioned(2), suspended, again), new: build(versioned(2)), user: v1alpha1.ControllerUser, want: build(versioned(2)), decision: Kept,
		},
		"suspension ended by a user, which isBlockingUp allows if it is off": {
			old: build(versioned(2), suspended, repair(2)), new: build(versioned(2), repair(2)), want: build(versioned(2), ended), decision: LeftToValidatingWebhook,
		},
		"suspension replaced by a user, which isBlockingUp allows if it is off": {
			old: build(versioned(2), suspended, repair(2)), new: build(versioned(2), label(v1alpha1.SuspendLabel, "holidays"), repair(2)),
			want: build(versioned(2), label(v1alpha1.SuspendLabel, "holidays"), ended), decision: LeftToValidatingWebhook,
		},
		"suspended by a user, the bypass of an earlier suspension is not marked": {
			old: build(versioned(2), repair(2)), new: build(versioned(2), suspended, repair(2)), want: build(versioned(2), suspended, ended), decision: Kept,
		},
		"suspended by a user, the bypass of an earlier suspension is marked": {
			old: build(versioned(2), ended), new: build(versioned(2), suspended, ended), want: build(versioned(2), suspended, ended), decision: Kept,
		},
		"bypass annotation marked as ended by a user": {
			old: build(versioned(2), suspended, repair(2)), new: build(versioned(2), suspended, ended), want: build(versioned(2), suspended, repair(2)), decision: Kept,
		},
		"repair of a suspension with the value of an earlier one": {
			old: build(versioned(2), suspended, ended), new: build(versioned(2), suspended, ended, asksRepair, image("busybox:3")),
			want: build(image("busybox:3"), versioned(3), suspended, repair(3)), decision: v1alpha1.ReasonRepairAdmitted,
		},
		"another repair keeps the record of the suspension": {
			old: build(versioned(2), suspended, again), new: build(versioned(2), suspended, again, asksRepair, image("busybox:3")),
			want: build(image("busybox:3"), versioned(3), suspended, frozen(v1alpha1.BypassRepair, 3)), decision: v1alpha1.ReasonRepairAdmitted,
		},
		"rollback annotation added by a user together with a template": {
			old: build(versioned(1)), new: build(versioned(1), rolledBack(2), image("busybox:2")),
			want: build(image("busybox:2"), versioned(2)), decision: Released,
		},
		"rollback annotation added by a user": {
			old: build(versioned(3)), new: build(versioned(3), rolledBack(3)), want: build(versioned(3)), decision: Kept,
		},
		"rollback annotation changed by a user": {
			old: build(versioned(3), rolledBack(2)), new: build(versioned(3), rolledBack(3)), want: build(versioned(3), rolledBack(2)), decision: Kept,
		},
		"rollback annotation removed by a user": {
			old: build(versioned(3), rolledBack(3)), new: build(versioned(3)), want: build(versioned(3), rolledBack(3)), decision: Kept,
		},
		"rollback annotation of a ReplicaSet copied by rollout undo": {
			old: build(versioned(3), rolledBack(3)), new: build(versioned(1), rolledBack(2), image("busybox:0")),
			want: build(image("busybox:0"), versioned(4), rolledBack(3)), decision: Released,
		},
		"rollback annotation added by a user together with a repair": {
			old: build(versioned(1), held), new: build(versioned(1), held, asksRepair, rolledBack(2), image("busybox:2")),
			want: build(image("busybox:2"), versioned(2), repair(2), label(v1alpha1.SuspendLabel, since)), decision: v1alpha1.ReasonRepairAdmitted,
		},
		"rollback annotation that names this release since before the opt-in": {
			old: build(versioned(1), rolledBack(2)), new: build(versioned(1), rolledBack(2), image("busybox:2")),
			want: build(image("busybox:2"), versioned(2)), decision: Released,
		},
		"rollback annotation that names the release of a template that the webhook missed": {
			old: build(versioned(1), rolledBack(2), image("busybox:2")), new: build(versioned(1), rolledBack(2), image("busybox:2")), user: v1alpha1.ControllerUser,
			want: build(image("busybox:2"), versioned(2)), decision: Released,
		},
		"rollback annotation of an earlier release, template changed": {
			old: build(versioned(3), rolledBack(3)), new: build(versioned(3), rolledBack(3), image("busybox:2")),
			want: build(image("busybox:2"), versioned(4), rolledBack(3)), decision: Released,
		},
		"rollback annotation added by the controller": {
			old: build(versioned(1)), new: build(versioned(1), rolledBack(2)), user: v1alpha1.ControllerUser,
			want: build(versioned(1), rolledBack(2)), decision: Kept,
		},
		"rolled back by the controller": {
			old: build(versioned(3), rolledBack(2)), new: build(versioned(3), rolledBack(4), image("busybox:0")), user: v1alpha1.ControllerUser,
			want: build(image("busybox:0"), versioned(4), rolledBack(4)), decision: Released,
		},
		"rollback request of a ReplicaSet copied by rollout undo": {
			old: build(versioned(3)), new: build(versioned(1), requested("ann", 1), image("busybox:0")),
			want: build(image("busybox:0"), versioned(4)), decision: Released,
		},
		"rollback request of a ReplicaSet copied by rollout undo, over a new request": {
			old: build(versioned(3), requested("bob", 3)), new: build(versioned(1), requested("ann", 1), image("busybox:0")),
			want: build(image("busybox:0"), versioned(4), requested("bob", 3)), decision: Released,
		},
		"rollback request of a ReplicaSet copied by rollout undo of a suspended workload": {
			old: build(versioned(2), held), new: build(versioned(1), held, requested("ann", 1), image("busybox:0")), good: builder.Version(build(image("busybox:0"))),
			want: build(image("busybox:0"), versioned(3), rollback(alice, 3), label(v1alpha1.SuspendLabel, since)), decision: v1alpha1.ReasonRollbackAdmitted,
		},
		"rollback request added by a user": {
			old: build(versioned(3)), new: build(versioned(2), requested(alice, 3)), want: build(versioned(3), requested(alice, 3)), decision: Kept,
		},
		"rollback request of this release added by a user together with its template": {
			old: build(versioned(3)), new: build(versioned(3), requested(alice, 4), image("busybox:2")),
			want: build(image("busybox:2"), versioned(4), requested(alice, 4)), decision: Released,
		},
		"rollback request removed by the controller, which rolls back": {
			old: build(versioned(3), requested("ann", 3)), new: build(versioned(3), rolledBack(4), image("busybox:0")), user: v1alpha1.ControllerUser,
			want: build(image("busybox:0"), versioned(4), rolledBack(4)), decision: Released,
		},
		"annotations of a ReplicaSet copied by rollout undo": {
			old: build(versioned(3)), new: build(versioned(1), annotated(v1alpha1.HoldAnnotation, "{}"), repair(2), image("busybox:0")),
			want: build(image("busybox:0"), versioned(4)), decision: Released,
		},
		"held by the controller": {
			old: build(versioned(1)), new: build(versioned(1), held), user: v1alpha1.ControllerUser, want: build(versioned(1), held), decision: Kept,
		},
		"suspended by a user": {
			old: build(versioned(1)), new: build(versioned(1), label(v1alpha1.SuspendLabel, "now")), want: build(versioned(1), label(v1alpha1.SuspendLabel, "now")), decision: Kept,
		},
		"repair label on a workload that is not suspended": {
			old: build(versioned(1)), new: build(versioned(1), asksRepair, image("busybox:2")), want: build(image("busybox:2"), versioned(2)), decision: Released,
		},

		"a newer template of an unjudged rollout resumes it": {
			old: build(versioned(1), unjudged), new: build(versioned(1), unjudged, image("busybox:2")),
			want: build(image("busybox:2"), versioned(2)), decision: Released,
		},
		"a newer template of an unjudged rollout that a person had paused": {
			old:  build(versioned(1), paused(true), annotated(v1alpha1.HoldAnnotation, `{"attempt":1,"former":true,"unjudged":true}`)),
			new:  build(versioned(1), paused(true), annotated(v1alpha1.HoldAnnotation, `{"attempt":1,"former":true,"unjudged":true}`), image("busybox:2")),
			want: build(image("busybox:2"), versioned(2), paused(true)), decision: Released,
		},
		"a newer template of an unjudged rollout, with a pause by kubectl apply": {
			old: build(versioned(1), unjudged), new: build(versioned(1), unjudged, image("busybox:2"), applied(`{"spec":{"paused":true}}`)),
			want: build(image("busybox:2"), versioned(2), paused(true), applied(`{"spec":{"paused":true}}`)), decision: Released,
		},
		"a newer template of an unjudged rollout, which a person had resumed after a pause by kubectl apply": {
			old:  build(versioned(1), unjudged, resumedAfterApply),
			new:  build(versioned(1), unjudged, image("busybox:2"), applied(`{"spec":{"paused":true}}`), resumedAfterApply),
			want: build(image("busybox:2"), versioned(2), applied(`{"spec":{"paused":true}}`), resumedAfterApply), decision: Released,
		},
		"a newer template of an unjudged rollout, by kubectl apply": {
			old: build(versioned(1), unjudged), new: build(versioned(1), unjudged, image("busybox:2"), applied(`{"spec":{"replicas":1}}`)),
			want: build(image("busybox:2"), versioned(2), applied(`{"spec":{"replicas":1}}`)), decision: Released,
		},
		"a newer template of an unjudged rollout, with a pause by server-side apply": {
			old: build(versioned(1), unjudged), new: build(versioned(1), unjudged, image("busybox:2"), owns(`{"f:spec":{"f:paused":{}}}`)),
			want: build(image("busybox:2"), versioned(2), paused(true), owns(`{"f:spec":{"f:paused":{}}}`)), decision: Released,
		},
		"a newer template of an unjudged rollout, by server-side apply": {
			old: build(versioned(1), unjudged), new: build(versioned(1), unjudged, image("busybox:2"), owns(`{"f:spec":{"f:replicas":{}}}`)),
			want: build(image("busybox:2"), versioned(2), owns(`{"f:spec":{"f:replicas":{}}}`)), decision: Released,
		},
		"an unjudged rollout, template unchanged": {
			old: build(versioned(1), unjudged), new: build(versioned(1), unjudged, annotated("team", "a")),
			want: build(versioned(1), unjudged, annotated("team", "a")), decision: Kept,
		},
		"a newer template of an unjudged, frozen workload": {
			old:  build(versioned(1), unjudged, label(v1alpha1.SuspendLabel, since)),
			new:  build(versioned(1), unjudged, label(v1alpha1.SuspendLabel, since), image("busybox:2")),
			want: build(image("busybox:2"), versioned(2), unjudged, label(v1alpha1.SuspendLabel, since)), decision: LeftToValidatingWebhook,
		},
		"repair resumes the rollout": {
			old: build(versioned(1), held), new: build(versioned(1), held, asksRepair, image("busybox:2")),
			want: build(image("busybox:2"), versioned(2), repair(2), label(v1alpha1.SuspendLabel, since)), decision: v1alpha1.ReasonRepairAdmitted,
		},
		"repair by a replace without Breakwater's fields": {
			old: build(versioned(1), held), new: build(asksRepair, image("busybox:2")),
			want: build(image("busybox:2"), versioned(2), repair(2), label(v1alpha1.SuspendLabel, since)), decision: v1alpha1.ReasonRepairAdmitted,
		},
		"repair, paused before it was held": {
			old:  build(versioned(1), held, annotated(v1alpha1.HoldAnnotation, `{"attempt":1,"former":true}`)),
			new:  build(versioned(1), held, annotated(v1alpha1.HoldAnnotation, `{"attempt":1,"former":true}`), asksRepair, image("busybox:2")),
			want: build(image("busybox:2"), versioned(2), repair(2), label(v1alpha1.SuspendLabel, since), paused(true)), decision: v1alpha1.ReasonRepairAdmitted,
		},
		"repair, malformed hold": {
			old: build(versioned(1), held, annotated(v1alpha1.HoldAnnotation, "[]")), new: build(versioned(1), held, annotated(v1alpha1.HoldAnnotation, "[]"), asksRepair, image("busybox:2")),
			want: build(image("busybox:2"), versioned(2), repair(2), label(v1alpha1.SuspendLabel, since)), decision: v1alpha1.ReasonRepairAdmitted,
		},
		"repair, suspended and paused by a user": {
			old:  build(versioned(1), label(v1alpha1.SuspendLabel, since), paused(true)),
			new:  build(versioned(1), label(v1alpha1.SuspendLabel, since), paused(true), asksRepair, image("busybox:2")),
			want: build(image("busybox:2"), versioned(2), repair(2), label(v1alpha1.SuspendLabel, since), paused(true)), decision: v1alpha1.ReasonRepairAdmitted,
		},
		"second repair, left to the validating webhook": {
			old:  build(versioned(2), repair(2), label(v1alpha1.SuspendLabel, since)),
			new:  build(versioned(2), repair(2), label(v1alpha1.SuspendLabel, since), asksRepair, image("busybox:3")),
			want: build(image("busybox:3"), versioned(3), repair(2), label(v1alpha1.SuspendLabel, since), asksRepair), decision: LeftToValidatingWebhook,
		},
		"repair of the next suspension": {
			old: build(versioned(2), repair(2), held, label(v1alpha1.SuspendLabel, "1800000000")),
			new: build(versioned(2), repair(2), held, label(v1alpha1.SuspendLabel, "1800000000"), asksRepair, image("busybox:3")),
			want: build(image("busybox:3"), versioned(3), label(v1alpha1.SuspendLabel, "1800000000"),
				builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: alice, Suspend: "1800000000", Attempt: 3})),
			decision: v1alpha1.ReasonRepairAdmitted,
		},
		"repair label without a template change": {
			old: build(versioned(1), held), new: build(versioned(1), held, asksRepair), want: build(versioned(1), held), decision: Kept,
		},
		"rollback resumes the rollout": {
			old: build(versioned(2), held), new: build(versioned(2), held, image("busybox:0")), good: builder.Version(build(image("busybox:0"))),
			want: build(image("busybox:0"), versioned(3), rollback(alice, 3), label(v1alpha1.SuspendLabel, since)), decision: v1alpha1.ReasonRollbackAdmitted,
		},
		"rollback during the repair of a frozen workload": {
			old: build(versioned(2), label(v1alpha1.SuspendLabel, since), frozen(v1alpha1.BypassRepair, 2)),
			new: build(versioned(2), label(v1alpha1.SuspendLabel, since), frozen(v1alpha1.BypassRepair, 2), image("busybox:0")), good: builder.Version(build(image("busybox:0"))),
			want:     build(image("busybox:0"), versioned(3), label(v1alpha1.SuspendLabel, since), frozen(v1alpha1.BypassRollback, 3)),
			decision: v1alpha1.ReasonRollbackAdmitted,
		},
		"rollback during the unjudged repair of a frozen workload": {
			old: build(versioned(2), unjudged, label(v1alpha1.SuspendLabel, since), frozen(v1alpha1.BypassRepair, 2)),
			new: build(versioned(2), unjudged, label(v1alpha1.SuspendLabel, since), frozen(v1alpha1.BypassRepair, 2), image("busybox:0")), good: builder.Version(build(image("busybox:0"))),
			want:     build(image("busybox:0"), versioned(3), label(v1alpha1.SuspendLabel, since), frozen(v1alpha1.BypassRollback, 3)),
			decision: v1alpha1.ReasonRollbackAdmitted,
		},
		"rollback of the next suspension": {
			old: build(versioned(2), label(v1alpha1.SuspendLabel, "1800000000"), frozen(v1alpha1.BypassRepair, 2)),
			new: build(versioned(2), label(v1alpha1.SuspendLabel, "1800000000"), frozen(v1alpha1.BypassRepair, 2), image("busybox:0")), good: builder.Version(build(image("busybox:0"))),
			want: build(image("busybox:0"), versioned(3), label(v1alpha1.SuspendLabel, "1800000000"),
				builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRollback, User: alice, Suspend: "1800000000", Attempt: 3})),
			decision: v1alpha1.ReasonRollbackAdmitted,
		},
		"rollback by the controller": {
			old: build(versioned(2), held), new: build(versioned(2), held, image("busybox:0")), user: v1alpha1.ControllerUser,
			want: build(image("busybox:0"), versioned(3), rollback(v1alpha1.ControllerUser, 3), label(v1alpha1.SuspendLabel, since)), decision: v1alpha1.ReasonRollbackAdmitted,
		},
		"self-healing of a frozen workload keeps the suspension": {
			old: build(versioned(2), suspended), new: build(versioned(2), suspended, healed, image("busybox:0")), user: v1alpha1.ControllerUser,
			want: build(image("busybox:0"), versioned(3), healed, suspended, keepsFreeze), decision: v1alpha1.ReasonRollbackAdmitted,
		},
		"self-healing of a workload that is frozen with an empty value": {
			old: build(versioned(2), frozenEmpty), new: build(versioned(2), frozenEmpty, healed, image("busybox:0")), user: v1alpha1.ControllerUser,
			want: build(image("busybox:0"), versioned(3), healed, frozenEmpty, keepsEmpty), decision: v1alpha1.ReasonRollbackAdmitted,
		},
		"self-healing of a workload that failed its check": {
			old: build(versioned(2), held), new: build(versioned(2), held, healed, image("busybox:0")), user: v1alpha1.ControllerUser,
			want: build(image("busybox:0"), versioned(3), healed, suspended, rollback(v1alpha1.ControllerUser, 3)), decision: v1alpha1.ReasonRollbackAdmitted,
		},
		"requested rollback of a frozen workload": {
			old: build(versioned(2), suspended), new: build(versioned(2), suspended, rolledBackBecause(v1alpha1.RollbackRequested, 3), image("busybox:0")), user: v1alpha1.ControllerUser,
			want:     build(image("busybox:0"), versioned(3), rolledBackBecause(v1alpha1.RollbackRequested, 3), suspended, rollback(v1alpha1.ControllerUser, 3)),
			decision: v1alpha1.ReasonRollbackAdmitted,
		},
		"repair of a frozen workload after self-healing": {
			old: build(versioned(3), healed, suspended, keepsFreeze), new: build(versioned(3), healed, suspended, keepsFreeze, asksRepair, image("busybox:3")),
			want: build(image("busybox:3"), versioned(4), healed, suspended, repair(4)), decision: v1alpha1.ReasonRepairAdmitted,
		},
		"the same, frozen with an empty value": {
			old: build(versioned(3), healed, frozenEmpty, keepsEmpty), new: build(versioned(3), healed, frozenEmpty, keepsEmpty, asksRepair, image("busybox:3")),
			want: build(image("busybox:3"), versioned(4), healed, frozenEmpty, builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: alice, Attempt: 4})), decision: v1alpha1.ReasonRepairAdmitted,
		},
	} {
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
	req := admissiontest.Request(t, old, build(versioned(1), builder.Held, label(v1alpha1.IgnoredSuspendLabel, "true"), image("busybox:2")))
	d := admissiontest.Apply(t, req, newHandler().Admit(t.Context(), req).Response)
	image("mirror/busybox:2")(d)
	req.Object.Raw = builder.JSON(t, d)
	got := admissiontest.Apply(t, req, newHandler().Admit(t.Context(), req).Response)
	want := build(image("mirror/busybox:2"), versioned(2), repair(2), label(v1alpha1.SuspendLabel, since))
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

func TestThePatchChangesOnlyOurFields(t *testing.T) {
	old := build(versioned(1), builder.Held)
	repair := build(versioned(1), builder.Held, label(v1alpha1.IgnoredSuspendLabel, "true"), image("busybox:2"))
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
	if !answer.Response.Allowed || answer.Response.Patch != nil || answer.Decision != "Error" {
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
	held, update := build(versioned(1), builder.Held), build(versioned(1), builder.Held, label(v1alpha1.IgnoredSuspendLabel, "true"), image("busybox:2"))
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
