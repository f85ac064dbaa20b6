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
func refused(message string) Decision {
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
		"what is not suspended is released":                               {free: true, in: Input{TemplateChanged: true}, want: admitted()},
		"what is not suspended needs no repair":                           {free: true, in: Input{TemplateChanged: true, RepairRequested: true}, want: admitted()},
		"a release is refused":                                            {in: Input{TemplateChanged: true}, want: refused(fixed)},
		"ending the hold is refused":                                      {in: Input{HoldChanged: true}, want: refused(fixed)},
		"a release that ends the hold too is refused":                     {in: Input{TemplateChanged: true, HoldChanged: true}, want: refused(fixed)},
		"all else is admitted":                                            {in: Input{}, want: admitted()},
		"a repair is admitted":                                            {in: Input{TemplateChanged: true, RepairRequested: true}, want: repaired()},
		"a repair that drops the suspend label is admitted":               {in: Input{TemplateChanged: true, RepairRequested: true, HoldChanged: true}, want: repaired()},
		"a second repair is refused":                                      {in: Input{TemplateChanged: true, RepairRequested: true, RepairUsed: true}, want: refused(used)},
		"a repair that changes no template is none":                       {in: Input{RepairRequested: true}, want: admitted()},
		"a repair that changes no template cannot end the hold":           {in: Input{RepairRequested: true, HoldChanged: true}, want: refused(fixed)},
		"after the repair a release is refused":                           {in: Input{TemplateChanged: true, RepairUsed: true}, want: refused(fixed)},
		"the way back to a good version is admitted":                      {in: Input{TemplateChanged: true, Succeeded: true}, want: rolledBack()},
		"the way back is admitted after the repair":                       {in: Input{TemplateChanged: true, Succeeded: true, RepairUsed: true}, want: rolledBack()},
		"the way back does not use the repair up":                         {in: Input{TemplateChanged: true, Succeeded: true, RepairRequested: true}, want: rolledBack()},
		"a release is refused while the history is unknown, and told why": {in: Input{TemplateChanged: true, HistoryUnknown: true}, want: refused(unknown)},
		"a repair is admitted while the history is unknown":               {in: Input{TemplateChanged: true, HistoryUnknown: true, RepairRequested: true}, want: repaired()},
		"our controller ends the hold":                                    {in: Input{ByController: true, HoldChanged: true}, want: admitted()},
		"our controller rolls back":                                       {in: Input{ByController: true, TemplateChanged: true}, want: rolledBack()},
		"with blocking off a release is admitted":                         {off: true, in: Input{TemplateChanged: true}, want: admitted()},
		"with blocking off the hold can be ended":                         {off: true, in: Input{HoldChanged: true}, want: admitted()},
		"with blocking off a repair still resumes":                        {off: true, in: Input{TemplateChanged: true, RepairRequested: true}, want: repaired()},
		"with blocking off a second repair resumes":                       {off: true, in: Input{TemplateChanged: true, RepairRequested: true, RepairUsed: true}, want: repaired()},
		"with blocking off the way back still resumes":                    {off: true, in: Input{TemplateChanged: true, Succeeded: true}, want: rolledBack()},
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
	unrecorded := refused(fixed + ": the webhook mdeployment.kb.io did not answer: try again")
	for name, tc := range map[string]struct {
		d                            Decision
		recorded, byController, open bool
		want                         Decision
	}{
		"a recorded repair is admitted":                     {d: repaired(), recorded: true, want: repaired()},
		"a recorded way back is admitted":                   {d: rolledBack(), recorded: true, want: rolledBack()},
		"a repair without its record is refused":            {d: repaired(), want: unrecorded},
		"a way back without its record is refused":          {d: rolledBack(), want: unrecorded},
		"our controller needs no record":                    {d: rolledBack(), byController: true, want: rolledBack()},
		"with blocking off nobody needs a record":           {d: repaired(), open: true, want: repaired()},
		"a refusal stays one":                               {d: refused(fixed), want: refused(fixed)},
		"what needs no bypass is admitted without a record": {d: admitted(), want: admitted()},
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{Kind: workload.Deployment, Name: "sleep", Suspended: true, Blocking: !tc.open, ByController: tc.byController}
			if diff := cmp.Diff(tc.want, Confirm(tc.d, in, tc.recorded)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
