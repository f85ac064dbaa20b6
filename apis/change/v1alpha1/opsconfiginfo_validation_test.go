package v1alpha1

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"knative.dev/pkg/apis"
)

func TestDefaultsTrimTypeAndContent(t *testing.T) {
	c := &OpsConfigInfo{Spec: OpsConfigInfoSpec{Type: " isBranch ", Content: "\t10\n", Remark: " as it is "}}
	c.SetDefaults(t.Context())
	want := OpsConfigInfoSpec{Type: "isBranch", Content: "10", Remark: " as it is "}
	if diff := cmp.Diff(want, c.Spec); diff != "" {
		t.Error(diff)
	}
}

func TestAnInvalidOpsConfigInfoIsDenied(t *testing.T) {
	for name, tc := range map[string]struct {
		spec OpsConfigInfoSpec
		// field is the field of the error, empty for no error; message is a part of its
		// message.
		field, message string
	}{
		"blocking needs no content":                         {spec: OpsConfigInfoSpec{Type: ConfigBlocking, Enable: true}},
		"blocking denies content":                           {OpsConfigInfoSpec{Type: ConfigBlocking, Content: "true", Enable: true}, "spec.content", "this type has no content"},
		"a batch is a percentage":                           {spec: OpsConfigInfoSpec{Type: ConfigBatch, Content: "10", Enable: true}},
		"a batch may have a percent sign":                   {spec: OpsConfigInfoSpec{Type: ConfigBatch, Content: "10%", Enable: true}},
		"a batch of 0 percent is denied":                    {OpsConfigInfoSpec{Type: ConfigBatch, Content: "0", Enable: true}, "spec.content", "from 1 to 100"},
		"a batch of 101 percent is denied":                  {OpsConfigInfoSpec{Type: ConfigBatch, Content: "101", Enable: true}, "spec.content", "from 1 to 100"},
		"an enabled batch needs content":                    {OpsConfigInfoSpec{Type: ConfigBatch, Enable: true}, "spec.content", "from 1 to 100"},
		"a disabled batch needs no content":                 {spec: OpsConfigInfoSpec{Type: ConfigBatch}},
		"content of a disabled type is checked":             {OpsConfigInfoSpec{Type: ConfigBatch, Content: "ten"}, "spec.content", "from 1 to 100"},
		"no verdict may be Pass":                            {spec: OpsConfigInfoSpec{Type: ConfigNoVerdict, Content: "Pass", Enable: true}},
		"no verdict may be Hold":                            {spec: OpsConfigInfoSpec{Type: ConfigNoVerdict, Content: "Hold", Enable: true}},
		"no verdict may be Fail":                            {spec: OpsConfigInfoSpec{Type: ConfigNoVerdict, Content: "Fail", Enable: true}},
		"no verdict denies another policy":                  {OpsConfigInfoSpec{Type: ConfigNoVerdict, Content: "pass?", Enable: true}, "spec.content", "Pass, Hold or Fail"},
		"a bypass may be Authorized":                        {spec: OpsConfigInfoSpec{Type: ConfigBypass, Content: "Authorized", Enable: true}},
		"a bypass may be Recorded":                          {spec: OpsConfigInfoSpec{Type: ConfigBypass, Content: "Recorded", Enable: true}},
		"a bypass denies another policy":                    {OpsConfigInfoSpec{Type: ConfigBypass, Content: "true", Enable: true}, "spec.content", "Authorized or Recorded"},
		"judges are names":                                  {spec: OpsConfigInfoSpec{Type: ConfigJudges, Content: "server, metrics,canary-1", Enable: true}},
		"a judge without a name is denied":                  {OpsConfigInfoSpec{Type: ConfigJudges, Content: "server,", Enable: true}, "spec.content", "separated by commas"},
		"a judge with a dot is denied":                      {OpsConfigInfoSpec{Type: ConfigJudges, Content: "canary.previous", Enable: true}, "spec.content", "lower-case letters"},
		"a judge that is named twice is denied":             {OpsConfigInfoSpec{Type: ConfigJudges, Content: "server,server", Enable: true}, "spec.content", "named twice"},
		"eleven judges are denied":                          {OpsConfigInfoSpec{Type: ConfigJudges, Content: "a,b,c,d,e,f,g,h,i,j,k", Enable: true}, "spec.content", "at most 10"},
		"a wait threshold is a duration":                    {spec: OpsConfigInfoSpec{Type: ConfigWaitThreshold, Content: "90s", Enable: true}},
		"a wait threshold without a unit is denied":         {OpsConfigInfoSpec{Type: ConfigWaitThreshold, Content: "90", Enable: true}, "spec.content", "90s or 2m"},
		"a timeout shorter than a second is denied":         {OpsConfigInfoSpec{Type: ConfigPreTimeout, Content: "999ms", Enable: true}, "spec.content", "out of range"},
		"a timeout longer than a day is denied":             {OpsConfigInfoSpec{Type: ConfigPostTimeout, Content: "24h1s", Enable: true}, "spec.content", "out of range"},
		"a submit timeout is a duration":                    {spec: OpsConfigInfoSpec{Type: ConfigSubmitTimeout, Content: "10m", Enable: true}},
		"a release timeout is a duration":                   {spec: OpsConfigInfoSpec{Type: ConfigReleaseTimeout, Content: "6h", Enable: true}},
		"a release timeout longer than a day is denied":     {OpsConfigInfoSpec{Type: ConfigReleaseTimeout, Content: "48h", Enable: true}, "spec.content", "1s to 24h"},
		"an order timeout is a duration":                    {spec: OpsConfigInfoSpec{Type: ConfigOrderTimeout, Content: "2m", Enable: true}},
		"self-healing needs no duration":                    {spec: OpsConfigInfoSpec{Type: ConfigSelfHealing, Enable: true}},
		"self-healing may have a duration":                  {spec: OpsConfigInfoSpec{Type: ConfigSelfHealing, Content: "5m", Enable: true}},
		"self-healing denies an invalid duration":           {OpsConfigInfoSpec{Type: ConfigSelfHealing, Content: "5", Enable: true}, "spec.content", "90s or 2m"},
		"automatic rollback denies content":                 {OpsConfigInfoSpec{Type: ConfigAutomaticRollback, Content: "on", Enable: true}, "spec.content", "use enable"},
		"the history limit is a number":                     {spec: OpsConfigInfoSpec{Type: ConfigHistoryLimit, Content: "3", Enable: true}},
		"a history limit of 0 is denied":                    {OpsConfigInfoSpec{Type: ConfigHistoryLimit, Content: "0", Enable: true}, "spec.content", "from 1 to 100"},
		"the pods of a Revision are a number":               {spec: OpsConfigInfoSpec{Type: ConfigRevisionPods, Content: "3", Enable: true}},
		"the pods of a Revision are those of a duration":    {spec: OpsConfigInfoSpec{Type: ConfigRevisionPods, Content: "30m", Enable: true}},
		"no pods of a Revision are denied":                  {OpsConfigInfoSpec{Type: ConfigRevisionPods, Content: "0", Enable: true}, "spec.content", "a whole number from 1 to 100, such as 3, or 1s to 24h0m0s, such as 10m"},
		"pods of a Revision for two days are denied":        {OpsConfigInfoSpec{Type: ConfigRevisionPods, Content: "48h", Enable: true}, "spec.content", "neither a number of pods nor a duration"},
		"a release check has a timeout":                     {spec: OpsConfigInfoSpec{Type: ConfigReleaseCheck, Content: "1500ms", Enable: true}},
		"a release check needs no timeout":                  {spec: OpsConfigInfoSpec{Type: ConfigReleaseCheck, Enable: true}},
		"a release check longer than 4s is denied":          {OpsConfigInfoSpec{Type: ConfigReleaseCheck, Content: "4001ms", Enable: true}, "spec.content", "100ms to 4s, because the API server waits 5s"},
		"a release check shorter than 100ms is denied":      {OpsConfigInfoSpec{Type: ConfigReleaseCheck, Content: "99ms", Enable: true}, "spec.content", "100ms to 4s"},
		"a release check without a unit is denied":          {OpsConfigInfoSpec{Type: ConfigReleaseCheck, Content: "2", Enable: true}, "spec.content", "for example 2s"},
		"an unchecked release may pass":                     {spec: OpsConfigInfoSpec{Type: ConfigReleaseCheckNoVerdict, Content: "Pass", Enable: true}},
		"an unchecked release may fail":                     {spec: OpsConfigInfoSpec{Type: ConfigReleaseCheckNoVerdict, Content: "Fail", Enable: true}},
		"an unchecked release cannot be held":               {OpsConfigInfoSpec{Type: ConfigReleaseCheckNoVerdict, Content: "Hold", Enable: true}, "spec.content", "Hold is not supported here"},
		"an unchecked release denies another policy":        {OpsConfigInfoSpec{Type: ConfigReleaseCheckNoVerdict, Content: "pass", Enable: true}, "spec.content", "write Pass or Fail"},
		"an unknown type is denied, known types are listed": {OpsConfigInfoSpec{Type: "isblockingup", Enable: true}, "spec.type", "isBlockingUp, isBranch"},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&OpsConfigInfo{Spec: tc.spec}).Validate(t.Context())
			if tc.field == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff([]string{tc.field}, err.Paths); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(err.Error(), tc.message) {
				t.Errorf("error %q does not contain %q", err, tc.message)
			}
		})
	}
}

func TestEveryTypeIsValidIfDisabledAndEmpty(t *testing.T) {
	for _, name := range ConfigTypes() {
		c := &OpsConfigInfo{Spec: OpsConfigInfoSpec{Type: ConfigType(name)}}
		if err := c.Validate(t.Context()); err != nil {
			t.Errorf("%s, disabled and empty: %v", name, err)
		}
	}
}

func TestAnInvalidOpsConfigInfoCanBeDeletedAndItsStatusUpdated(t *testing.T) {
	c := &OpsConfigInfo{Spec: OpsConfigInfoSpec{Type: "nonsense"}}
	if err := c.Validate(apis.WithinDelete(t.Context())); err != nil {
		t.Error(err)
	}
	if err := c.Validate(apis.WithinSubResourceUpdate(t.Context(), c, "status")); err != nil {
		t.Error(err)
	}
}
