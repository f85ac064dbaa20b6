package version

import (
	"testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
)

func TestOnlyTheWebhookWritesTheBypassAnnotation(t *testing.T) {
	checkReleases(t, map[string]releaseCase{
		"bypass annotation changed by a user": {
			old: build(versioned(3), repair(3)), new: build(versioned(3), repair(99)), want: build(versioned(3), repair(3)), decision: Kept,
		},
		"bypass annotation removed by a user": {
			old: build(versioned(3), repair(3)), new: build(versioned(3)), want: build(versioned(3)), decision: Kept,
		},
		"bypass annotation removed by a user while a repair runs": {
			old: build(versioned(2), suspended, frozen(v1alpha1.BypassRepair, 2)), new: build(versioned(2), suspended),
			want: build(versioned(2), suspended, anotherRepair), decision: Kept,
		},
		"bypass annotation removed by a user while a repair runs, repeated call": {
			old: build(versioned(2), suspended, frozen(v1alpha1.BypassRepair, 2)), new: build(versioned(2), suspended, anotherRepair),
			want: build(versioned(2), suspended, anotherRepair), decision: Kept,
		},
		"bypass annotation removed by a user a second time": {
			old: build(versioned(2), suspended, anotherRepair), new: build(versioned(2), suspended), want: build(versioned(2), suspended, anotherRepair), decision: Kept,
		},
		"bypass annotation changed by a user while a repair runs": {
			old: build(versioned(2), suspended, frozen(v1alpha1.BypassRepair, 2)), new: build(versioned(2), suspended, repair(2)),
			want: build(versioned(2), suspended, frozen(v1alpha1.BypassRepair, 2)), decision: Kept,
		},
		"bypass annotation of an earlier suspension removed by a user": {
			old: build(versioned(2), nextSuspended, repair(2)), new: build(versioned(2), nextSuspended),
			want: build(versioned(2), nextSuspended), decision: Kept,
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
			old: build(versioned(2), suspended, anotherRepair), new: build(versioned(2)), user: v1alpha1.ControllerUser, want: build(versioned(2)), decision: Kept,
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
		"annotations of a ReplicaSet copied by rollout undo": {
			old: build(versioned(3)), new: build(versioned(1), annotated(v1alpha1.HoldAnnotation, "{}"), repair(2), image("busybox:0")),
			want: build(image("busybox:0"), versioned(4)), decision: Released,
		},
	})
}

func TestOnlyTheControllerWritesTheRollbackAnnotation(t *testing.T) {
	checkReleases(t, map[string]releaseCase{
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
			want: build(image("busybox:2"), versioned(2), repair(2), suspended), decision: v1alpha1.ReasonRepairAdmitted,
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
	})
}

func TestARolloutUndoDoesNotCopyARollbackRequest(t *testing.T) {
	checkReleases(t, map[string]releaseCase{
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
			want: build(image("busybox:0"), versioned(3), rollback(alice, 3), suspended), decision: v1alpha1.ReasonRollbackAdmitted,
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
	})
}

func TestARepairOrRollbackResumesTheRollout(t *testing.T) {
	checkReleases(t, map[string]releaseCase{
		"repair of a suspension with the value of an earlier one": {
			old: build(versioned(2), suspended, ended), new: build(versioned(2), suspended, ended, asksRepair, image("busybox:3")),
			want: build(image("busybox:3"), versioned(3), suspended, repair(3)), decision: v1alpha1.ReasonRepairAdmitted,
		},
		"another repair keeps the record of the suspension": {
			old: build(versioned(2), suspended, anotherRepair), new: build(versioned(2), suspended, anotherRepair, asksRepair, image("busybox:3")),
			want: build(image("busybox:3"), versioned(3), suspended, frozen(v1alpha1.BypassRepair, 3)), decision: v1alpha1.ReasonRepairAdmitted,
		},
		"repair resumes the rollout": {
			old: build(versioned(1), held), new: build(versioned(1), held, asksRepair, image("busybox:2")),
			want: build(image("busybox:2"), versioned(2), repair(2), suspended), decision: v1alpha1.ReasonRepairAdmitted,
		},
		"repair by a replace without Breakwater's fields": {
			old: build(versioned(1), held), new: build(asksRepair, image("busybox:2")),
			want: build(image("busybox:2"), versioned(2), repair(2), suspended), decision: v1alpha1.ReasonRepairAdmitted,
		},
		"repair, paused before it was held": {
			old:  build(versioned(1), held, annotated(v1alpha1.HoldAnnotation, `{"attempt":1,"former":true}`)),
			new:  build(versioned(1), held, annotated(v1alpha1.HoldAnnotation, `{"attempt":1,"former":true}`), asksRepair, image("busybox:2")),
			want: build(image("busybox:2"), versioned(2), repair(2), suspended, paused(true)), decision: v1alpha1.ReasonRepairAdmitted,
		},
		"repair, malformed hold": {
			old: build(versioned(1), held, annotated(v1alpha1.HoldAnnotation, "[]")), new: build(versioned(1), held, annotated(v1alpha1.HoldAnnotation, "[]"), asksRepair, image("busybox:2")),
			want: build(image("busybox:2"), versioned(2), repair(2), suspended), decision: v1alpha1.ReasonRepairAdmitted,
		},
		"repair, suspended and paused by a user": {
			old:  build(versioned(1), suspended, paused(true)),
			new:  build(versioned(1), suspended, paused(true), asksRepair, image("busybox:2")),
			want: build(image("busybox:2"), versioned(2), repair(2), suspended, paused(true)), decision: v1alpha1.ReasonRepairAdmitted,
		},
		"second repair, left to the validating webhook": {
			old:  build(versioned(2), repair(2), suspended),
			new:  build(versioned(2), repair(2), suspended, asksRepair, image("busybox:3")),
			want: build(image("busybox:3"), versioned(3), repair(2), suspended, asksRepair), decision: LeftToValidatingWebhook,
		},
		"repair of the next suspension": {
			old: build(versioned(2), repair(2), held, nextSuspended),
			new: build(versioned(2), repair(2), held, nextSuspended, asksRepair, image("busybox:3")),
			want: build(image("busybox:3"), versioned(3), nextSuspended,
				builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: alice, Suspend: nextSuspension, Attempt: 3})),
			decision: v1alpha1.ReasonRepairAdmitted,
		},
		"repair label without a template change": {
			old: build(versioned(1), held), new: build(versioned(1), held, asksRepair), want: build(versioned(1), held), decision: Kept,
		},
		"rollback resumes the rollout": {
			old: build(versioned(2), held), new: build(versioned(2), held, image("busybox:0")), good: builder.Version(build(image("busybox:0"))),
			want: build(image("busybox:0"), versioned(3), rollback(alice, 3), suspended), decision: v1alpha1.ReasonRollbackAdmitted,
		},
		"rollback during the repair of a frozen workload": {
			old: build(versioned(2), suspended, frozen(v1alpha1.BypassRepair, 2)),
			new: build(versioned(2), suspended, frozen(v1alpha1.BypassRepair, 2), image("busybox:0")), good: builder.Version(build(image("busybox:0"))),
			want:     build(image("busybox:0"), versioned(3), suspended, frozen(v1alpha1.BypassRollback, 3)),
			decision: v1alpha1.ReasonRollbackAdmitted,
		},
		"rollback during the unjudged repair of a frozen workload": {
			old: build(versioned(2), unjudged, suspended, frozen(v1alpha1.BypassRepair, 2)),
			new: build(versioned(2), unjudged, suspended, frozen(v1alpha1.BypassRepair, 2), image("busybox:0")), good: builder.Version(build(image("busybox:0"))),
			want:     build(image("busybox:0"), versioned(3), suspended, frozen(v1alpha1.BypassRollback, 3)),
			decision: v1alpha1.ReasonRollbackAdmitted,
		},
		"rollback of the next suspension": {
			old: build(versioned(2), nextSuspended, frozen(v1alpha1.BypassRepair, 2)),
			new: build(versioned(2), nextSuspended, frozen(v1alpha1.BypassRepair, 2), image("busybox:0")), good: builder.Version(build(image("busybox:0"))),
			want: build(image("busybox:0"), versioned(3), nextSuspended,
				builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRollback, User: alice, Suspend: nextSuspension, Attempt: 3})),
			decision: v1alpha1.ReasonRollbackAdmitted,
		},
		"rollback by the controller": {
			old: build(versioned(2), held), new: build(versioned(2), held, image("busybox:0")), user: v1alpha1.ControllerUser,
			want: build(image("busybox:0"), versioned(3), rollback(v1alpha1.ControllerUser, 3), suspended), decision: v1alpha1.ReasonRollbackAdmitted,
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
	})
}
