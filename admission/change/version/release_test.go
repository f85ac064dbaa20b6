package version

import (
	"math"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
)

func TestACreatedWorkloadGetsANewRelease(t *testing.T) {
	long := strings.Repeat("n", 253)
	checkReleases(t, map[string]releaseCase{
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
			new: build(suspended, repair(2)), want: build(versioned(1)), decision: Released,
		},
		"created paused by a user": {
			new: build(paused(true)), want: build(versioned(1), paused(true)), decision: Released,
		},
		"created from a saved manifest with a malformed hold": {
			new: build(held, annotated(v1alpha1.HoldAnnotation, "{")), want: build(versioned(1)), decision: Released,
		},
	})
}

func TestOnlyAChangedTemplateIsTheNextAttempt(t *testing.T) {
	checkReleases(t, map[string]releaseCase{
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
			want: build(image("busybox:2"), versioned(1), repair(1), suspended), decision: v1alpha1.ReasonRepairAdmitted,
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
		"release removed by a replace": {
			old: build(versioned(3)), new: build(bare), want: build(bare, versioned(3)), decision: Kept,
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
	})
}

func TestAHoldOfUnjudgedPodsIsKept(t *testing.T) {
	checkReleases(t, map[string]releaseCase{
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
	})
}

func TestANewerTemplateResumesAnUnjudgedRollout(t *testing.T) {
	checkReleases(t, map[string]releaseCase{
		"a newer template of an unjudged rollout resumes it": {
			old: build(versioned(1), unjudged), new: build(versioned(1), unjudged, image("busybox:2")),
			want: build(image("busybox:2"), versioned(2)), decision: Released,
		},
		"a newer template of an unjudged rollout that a person had paused": {
			old:  build(versioned(1), paused(true), annotated(v1alpha1.HoldAnnotation, pausedBefore)),
			new:  build(versioned(1), paused(true), annotated(v1alpha1.HoldAnnotation, pausedBefore), image("busybox:2")),
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
			old:  build(versioned(1), unjudged, suspended),
			new:  build(versioned(1), unjudged, suspended, image("busybox:2")),
			want: build(image("busybox:2"), versioned(2), unjudged, suspended), decision: LeftToValidatingWebhook,
		},
	})
}
