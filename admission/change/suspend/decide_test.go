package suspend

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

const fixed = "deployment sleep is suspended"

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
		used    = fixed + ": a repair of this suspension was already admitted; remove the annotation altershield.defense.antgroup.com/bypass to allow another"
		unknown = fixed + ": looking up whether this version succeeded failed: try again"
	)
	for name, tc := range map[string]struct {
		in   Input // of a suspended Deployment, with blocking on
		free bool  // not suspended
		off  bool  // blocking off
		want Decision
	}{
		"not suspended, release":                 {free: true, in: Input{TemplateChanged: true}, want: admitted()},
		"not suspended, repair":                  {free: true, in: Input{TemplateChanged: true, RepairRequested: true}, want: admitted()},
		"release":                                {in: Input{TemplateChanged: true}, want: denied(fixed)},
		"end of the hold":                        {in: Input{HoldChanged: true}, want: denied(fixed)},
		"release and end of the hold":            {in: Input{TemplateChanged: true, HoldChanged: true}, want: denied(fixed)},
		"other change":                           {in: Input{}, want: admitted()},
		"repair":                                 {in: Input{TemplateChanged: true, RepairRequested: true}, want: repaired()},
		"repair without the suspend label":       {in: Input{TemplateChanged: true, RepairRequested: true, HoldChanged: true}, want: repaired()},
		"second repair":                          {in: Input{TemplateChanged: true, RepairRequested: true, RepairUsed: true}, want: denied(used)},
		"repair label without a template change": {in: Input{RepairRequested: true}, want: admitted()},
		"repair label, end of the hold without a template change": {in: Input{RepairRequested: true, HoldChanged: true}, want: denied(fixed)},
		"release after the repair":                                {in: Input{TemplateChanged: true, RepairUsed: true}, want: denied(fixed)},
		"rollback":                                                {in: Input{TemplateChanged: true, Succeeded: true}, want: rolledBack()},
		"rollback after the repair":                               {in: Input{TemplateChanged: true, Succeeded: true, RepairUsed: true}, want: rolledBack()},
		"rollback with the repair label":                          {in: Input{TemplateChanged: true, Succeeded: true, RepairRequested: true}, want: rolledBack()},
		"release, history unknown":                                {in: Input{TemplateChanged: true, HistoryUnknown: true}, want: denied(unknown)},
		"repair, history unknown":                                 {in: Input{TemplateChanged: true, HistoryUnknown: true, RepairRequested: true}, want: repaired()},
		"end of the hold by the controller":                       {in: Input{ByController: true, HoldChanged: true}, want: admitted()},
		"rollback by the controller":                              {in: Input{ByController: true, TemplateChanged: true}, want: rolledBack()},
		"blocking off, release":                                   {off: true, in: Input{TemplateChanged: true}, want: admitted()},
		"blocking off, end of the hold":                           {off: true, in: Input{HoldChanged: true}, want: admitted()},
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
	unrecorded := denied(fixed + ": the webhook mdeployment.kb.io did not answer: try again")
	for name, tc := range map[string]struct {
		d                            Decision
		recorded, byController, open bool
		want                         Decision
	}{
		"recorded repair":                                   {d: repaired(), recorded: true, want: repaired()},
		"recorded rollback":                                 {d: rolledBack(), recorded: true, want: rolledBack()},
		"repair without its annotation":                     {d: repaired(), want: unrecorded},
		"rollback without its annotation":                   {d: rolledBack(), want: unrecorded},
		"rollback by the controller without its annotation": {d: rolledBack(), byController: true, want: rolledBack()},
		"blocking off, repair without its annotation":       {d: repaired(), open: true, want: repaired()},
		"denied":                    {d: denied(fixed), want: denied(fixed)},
		"admitted without a bypass": {d: admitted(), want: admitted()},
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{Kind: workload.Deployment, Name: "sleep", Suspended: true, Blocking: !tc.open, ByController: tc.byController}
			if diff := cmp.Diff(tc.want, Confirm(tc.d, in, tc.recorded)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
