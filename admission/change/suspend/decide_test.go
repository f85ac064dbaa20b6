package suspend

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

const suspendedMessage = "deployment sleep is suspended"

func admitted() Decision { return Decision{Outcome: Admit} }
func repaired() Decision {
	return Decision{Outcome: Repair, Reason: v1alpha1.ReasonRepairAdmitted}
}
func rolledBack() Decision {
	return Decision{Outcome: Rollback, Reason: v1alpha1.ReasonRollbackAdmitted}
}
func denied(message string) Decision {
	return Decision{Outcome: Deny, Reason: v1alpha1.ReasonReleaseDenied, Message: message}
}

func TestDecide(t *testing.T) {
	const (
		used    = suspendedMessage + ": a repair of this suspension was already admitted; remove the annotation altershield.defense.antgroup.com/bypass to allow another"
		traffic = suspendedMessage + ": spec.traffic sends requests to a Revision that failed its check, or to the latest one before a repair succeeded; name another Revision; the success of a repair or a rollback restores the traffic"
		missing = suspendedMessage + ": its release would not be judged: spec.template has no containers: write the pod template there instead of a reference to it (spec.workloadRef)"
		unknown = suspendedMessage + ": Breakwater could not find out whether this version succeeded before: try again"
	)
	for name, tc := range map[string]struct {
		in   Input // of a suspended Deployment, with blocking on
		free bool  // not suspended
		off  bool  // blocking off
		want Decision
	}{
		"not suspended, release":                 {free: true, in: Input{TemplateChanged: true}, want: admitted()},
		"not suspended, repair":                  {free: true, in: Input{TemplateChanged: true, RepairRequested: true}, want: admitted()},
		"release":                                {in: Input{TemplateChanged: true}, want: denied(suspendedMessage)},
		"end of the hold":                        {in: Input{SuspensionOrHoldChanged: true}, want: denied(suspendedMessage)},
		"traffic to a failed Revision":           {in: Input{TrafficToFailedRevision: true}, want: denied(traffic)},
		"repair with traffic":                    {in: Input{TemplateChanged: true, RepairRequested: true, TrafficToFailedRevision: true}, want: repaired()},
		"blocking off, traffic":                  {off: true, in: Input{TrafficToFailedRevision: true}, want: admitted()},
		"traffic by the controller":              {in: Input{TrafficToFailedRevision: true, ByController: true}, want: admitted()},
		"release and end of the hold":            {in: Input{TemplateChanged: true, SuspensionOrHoldChanged: true}, want: denied(suspendedMessage)},
		"other change":                           {in: Input{}, want: admitted()},
		"repair":                                 {in: Input{TemplateChanged: true, RepairRequested: true}, want: repaired()},
		"repair without the suspend label":       {in: Input{TemplateChanged: true, RepairRequested: true, SuspensionOrHoldChanged: true}, want: repaired()},
		"second repair":                          {in: Input{TemplateChanged: true, RepairRequested: true, RepairUsed: true}, want: denied(used)},
		"repair without a template":              {in: Input{TemplateChanged: true, RepairRequested: true, NoTemplate: true}, want: denied(missing)},
		"rollback without a template":            {in: Input{TemplateChanged: true, Succeeded: true, NoTemplate: true}, want: denied(missing)},
		"repair label without a template change": {in: Input{RepairRequested: true}, want: admitted()},
		"repair label, end of the hold without a template change": {in: Input{RepairRequested: true, SuspensionOrHoldChanged: true}, want: denied(suspendedMessage)},
		"release after the repair":                                {in: Input{TemplateChanged: true, RepairUsed: true}, want: denied(suspendedMessage)},
		"rollback":                                                {in: Input{TemplateChanged: true, Succeeded: true}, want: rolledBack()},
		"rollback after the repair":                               {in: Input{TemplateChanged: true, Succeeded: true, RepairUsed: true}, want: rolledBack()},
		"rollback with the repair label":                          {in: Input{TemplateChanged: true, Succeeded: true, RepairRequested: true}, want: rolledBack()},
		"release, history unknown":                                {in: Input{TemplateChanged: true, HistoryUnknown: true}, want: denied(unknown)},
		"repair, history unknown":                                 {in: Input{TemplateChanged: true, HistoryUnknown: true, RepairRequested: true}, want: repaired()},
		"end of the hold by the controller":                       {in: Input{ByController: true, SuspensionOrHoldChanged: true}, want: admitted()},
		"rollback by the controller":                              {in: Input{ByController: true, TemplateChanged: true}, want: rolledBack()},
		"blocking off, release":                                   {off: true, in: Input{TemplateChanged: true}, want: admitted()},
		"blocking off, end of the hold":                           {off: true, in: Input{SuspensionOrHoldChanged: true}, want: admitted()},
		"blocking off, repair":                                    {off: true, in: Input{TemplateChanged: true, RepairRequested: true}, want: repaired()},
		"blocking off, second repair":                             {off: true, in: Input{TemplateChanged: true, RepairRequested: true, RepairUsed: true}, want: repaired()},
		"blocking off, rollback":                                  {off: true, in: Input{TemplateChanged: true, Succeeded: true}, want: rolledBack()},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.Kind, tc.in.Name, tc.in.Suspended, tc.in.Blocking = workload.Deployment, "sleep", !tc.free, !tc.off
			if diff := cmp.Diff(tc.want, Decide(tc.in)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestConfirm(t *testing.T) {
	unrecorded := denied(suspendedMessage + ": the webhook mdeployment.kb.io did not record this change, because it did not answer or failed: try again")
	for name, tc := range map[string]struct {
		d                            Decision
		recorded, byController, open bool
		changed                      bool // the annotation is changed, which adds no bypass
		want                         Decision
	}{
		"recorded repair":                                   {d: repaired(), recorded: true, want: repaired()},
		"recorded rollback":                                 {d: rolledBack(), recorded: true, want: rolledBack()},
		"repair without its annotation":                     {d: repaired(), want: unrecorded},
		"rollback without its annotation":                   {d: rolledBack(), want: unrecorded},
		"rollback by the controller without its annotation": {d: rolledBack(), byController: true, want: rolledBack()},
		"blocking off, repair without its annotation":       {d: repaired(), open: true, want: repaired()},
		"denied":                    {d: denied(suspendedMessage), want: denied(suspendedMessage)},
		"admitted without a bypass": {d: admitted(), want: admitted()},
		"admitted, the annotation is removed or changed":               {d: admitted(), changed: true, want: unrecorded},
		"admitted, the annotation is removed or changed, blocking off": {d: admitted(), changed: true, open: true, want: admitted()},
		"recorded repair, which changes the annotation":                {d: repaired(), recorded: true, changed: true, want: repaired()},
		"denied, the annotation is removed or changed":                 {d: denied(suspendedMessage), changed: true, want: denied(suspendedMessage)},
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{Kind: workload.Deployment, Name: "sleep", Suspended: true, Blocking: !tc.open, ByController: tc.byController, BypassAnnotationChanged: tc.changed}
			if diff := cmp.Diff(tc.want, Confirm(tc.d, in, tc.recorded)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhichDecisionsNeedTheRightToBypass(t *testing.T) {
	for name, tc := range map[string]struct {
		d    Decision
		in   Input // of a suspended workload, with blocking on and bypass Authorized
		want bool
	}{
		"repair":                          {d: repaired(), want: true},
		"rollback":                        {d: rolledBack()},
		"other change":                    {d: admitted()},
		"denial":                          {d: denied(suspendedMessage), in: Input{OwnerAddedOrChanged: true}},
		"removal of the record":           {d: admitted(), in: Input{BypassRemoved: true}, want: true},
		"deletion":                        {d: admitted(), in: Input{Deletion: true}, want: true},
		"new owner":                       {d: admitted(), in: Input{OwnerAddedOrChanged: true}, want: true},
		"rollback with a new owner":       {d: rolledBack(), in: Input{OwnerAddedOrChanged: true}, want: true},
		"new owner by our controller":     {d: admitted(), in: Input{OwnerAddedOrChanged: true, ByController: true}},
		"deletion, by our own controller": {d: admitted(), in: Input{Deletion: true, ByController: true}},
	} {
		t.Run(name, func(t *testing.T) {
			in := tc.in
			in.Suspended, in.Blocking, in.BypassNeedsVerb = true, true, true
			if got := NeedsAuthorization(tc.d, in); got != tc.want {
				t.Errorf("got %v", got)
			}
			for option, off := range map[string]func(*Input){
				"not suspended":       func(in *Input) { in.Suspended = false },
				"blocking off":        func(in *Input) { in.Blocking = false },
				"bypass not required": func(in *Input) { in.BypassNeedsVerb = false },
			} {
				in := in
				if off(&in); NeedsAuthorization(tc.d, in) {
					t.Errorf("%s: the right is required", option)
				}
			}
		})
	}
}

func TestADenialNamesWhatNeedsTheRightToBypass(t *testing.T) {
	const lacking = ` requires the verb "bypass" on changeworkloads.app.ops.cloud.alipay.com in namespace default, which alice does not have; ` +
		"an administrator of the namespace can grant ClusterRole breakwater-bypass"
	const removal = "the removal of annotation altershield.defense.antgroup.com/bypass (it allows another repair)"
	for name, tc := range map[string]struct {
		d      Decision
		in     Input
		action string
	}{
		"repair":                          {d: Decision{Outcome: Repair}, action: "a repair"},
		"repair that replaces the bypass": {d: Decision{Outcome: Repair}, in: Input{BypassRemoved: true}, action: "a repair"},
		"removal of the bypass":           {d: admitted(), in: Input{BypassRemoved: true}, action: removal},
		"deletion":                        {d: admitted(), in: Input{Deletion: true}, action: "a deletion"},
		"new owner":                       {d: admitted(), in: Input{OwnerAddedOrChanged: true}, action: "an added or changed owner (metadata.ownerReferences)"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.Kind, tc.in.Name = workload.Deployment, "sleep"
			got := Authorize(tc.d, tc.in, "alice", "default", Authorization{})
			if diff := cmp.Diff(denied(suspendedMessage+": "+tc.action+lacking), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnOwnerIsAddedIfTheGarbageCollectorWouldFindAnother(t *testing.T) {
	owner := func(change func(*metav1.OwnerReference)) []metav1.OwnerReference {
		o := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "App", Name: "web", UID: "1"}
		change(&o)
		return []metav1.OwnerReference{o}
	}
	same := func(*metav1.OwnerReference) {}
	before := owner(same)
	for name, tc := range map[string]struct {
		before, after []metav1.OwnerReference
		want          bool
	}{
		"none":                   {},
		"first":                  {after: before, want: true},
		"second":                 {before: before, after: append(owner(func(o *metav1.OwnerReference) { o.UID = "2" }), before...), want: true},
		"same":                   {before: before, after: before},
		"removed":                {before: before},
		"controller":             {before: before, after: owner(func(o *metav1.OwnerReference) { o.Controller = new(true) })},
		"block":                  {before: before, after: owner(func(o *metav1.OwnerReference) { o.BlockOwnerDeletion = new(true) })},
		"other UID":              {before: before, after: owner(func(o *metav1.OwnerReference) { o.UID = "2" }), want: true},
		"name that is not there": {before: before, after: owner(func(o *metav1.OwnerReference) { o.Name = "none" }), want: true},
		"other kind":             {before: before, after: owner(func(o *metav1.OwnerReference) { o.Kind = "None" }), want: true},
		"other version":          {before: before, after: owner(func(o *metav1.OwnerReference) { o.APIVersion = "example.com/v2" }), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ownerAddedOrChanged(tc.before, tc.after); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
