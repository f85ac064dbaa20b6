package statuspatch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/breakwater-dev/breakwater/internal/statuspatch"
	"github.com/breakwater-dev/breakwater/test/builder"
)

func TestThePolicyOfFunctionsAllowsTheFieldsThatTheyWrite(t *testing.T) {
	var fields string
	for _, p := range builder.Manifests[admissionregistrationv1.ValidatingAdmissionPolicy](t, "../../config/core/444-functions-write-facts.yaml") {
		for _, v := range p.Spec.Variables {
			if v.Name == "fields" {
				fields = v.Expression
			}
		}
	}
	for key, written := range map[string][]string{
		// Submit records the verdicts that it retrieved.
		"changepods submit": slices.Concat(statuspatch.ChangePodSubmit, statuspatch.ChangePodVerdict),
		// Together with a verdict, function verdict writes the intent of the finish of the batch, or
		// the end of the batch.
		"changepods verdict": slices.Concat(statuspatch.ChangePodVerdict, statuspatch.ChangePodJudge,
			statuspatch.ChangePodFinish, statuspatch.ChangePodEnd),
		"changeworkloads submit":     slices.Concat(statuspatch.ChangeWorkloadSubmit, statuspatch.ChangeWorkloadVerdict),
		"changeworkloads verdict":    statuspatch.ChangeWorkloadVerdict,
		"changeworkloads deadletter": statuspatch.ChangeWorkloadInbox,
		"changeworkloads callback":   statuspatch.ChangeWorkloadInbox,
	} {
		if want := fmt.Sprintf("'%s': ['%s']", key, strings.Join(written, "', '")); !strings.Contains(fields, want) {
			t.Errorf("the policy lacks %s", want)
		}
	}
}
