package v1alpha1

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"knative.dev/pkg/apis"
)

func TestOpsConfigInfoDefaults(t *testing.T) {
	c := &OpsConfigInfo{Spec: OpsConfigInfoSpec{Type: " isBranch ", Content: "\t10\n", Remark: " as it is "}}
	c.SetDefaults(t.Context())
	want := OpsConfigInfoSpec{Type: "isBranch", Content: "10", Remark: " as it is "}
	if diff := cmp.Diff(want, c.Spec); diff != "" {
		t.Error(diff)
	}
}

func TestOpsConfigInfoValidation(t *testing.T) {
	for name, tc := range map[string]struct {
		spec OpsConfigInfoSpec
		// field and says are of the error; none is wanted when field is empty.
		field, says string
	}{
		"blocking needs no content":                       {spec: OpsConfigInfoSpec{Type: ConfigBlocking, Enable: true}},
		"blocking refuses a content":                      {OpsConfigInfoSpec{Type: ConfigBlocking, Content: "true", Enable: true}, "spec.content", "this type has no content"},
		"a batch is a per cent":                           {spec: OpsConfigInfoSpec{Type: ConfigBatch, Content: "10", Enable: true}},
		"a batch may have a per cent sign":                {spec: OpsConfigInfoSpec{Type: ConfigBatch, Content: "10%", Enable: true}},
		"a batch of 0 per cent is refused":                {OpsConfigInfoSpec{Type: ConfigBatch, Content: "0", Enable: true}, "spec.content", "from 1 to 100"},
		"a batch of 101 per cent is refused":              {OpsConfigInfoSpec{Type: ConfigBatch, Content: "101", Enable: true}, "spec.content", "from 1 to 100"},
		"a batch that is enabled needs a content":         {OpsConfigInfoSpec{Type: ConfigBatch, Enable: true}, "spec.content", "from 1 to 100"},
		"a batch that is not enabled needs none":          {spec: OpsConfigInfoSpec{Type: ConfigBatch}},
		"a content is checked while it is not enabled":    {OpsConfigInfoSpec{Type: ConfigBatch, Content: "ten"}, "spec.content", "from 1 to 100"},
		"no verdict may pass":                             {spec: OpsConfigInfoSpec{Type: ConfigNoVerdict, Content: "Pass", Enable: true}},
		"no verdict may hold":                             {spec: OpsConfigInfoSpec{Type: ConfigNoVerdict, Content: "Hold", Enable: true}},
		"no verdict may fail":                             {spec: OpsConfigInfoSpec{Type: ConfigNoVerdict, Content: "Fail", Enable: true}},
		"no verdict may do nothing else":                  {OpsConfigInfoSpec{Type: ConfigNoVerdict, Content: "pass?", Enable: true}, "spec.content", "Pass, Hold or Fail"},
		"a bypass may need a right":                       {spec: OpsConfigInfoSpec{Type: ConfigBypass, Content: "Authorized", Enable: true}},
		"a bypass may be recorded":                        {spec: OpsConfigInfoSpec{Type: ConfigBypass, Content: "Recorded", Enable: true}},
		"a bypass may be nothing else":                    {OpsConfigInfoSpec{Type: ConfigBypass, Content: "true", Enable: true}, "spec.content", "Authorized or Recorded"},
		"a wait threshold is a duration":                  {spec: OpsConfigInfoSpec{Type: ConfigWaitThreshold, Content: "90s", Enable: true}},
		"a wait threshold without a unit is refused":      {OpsConfigInfoSpec{Type: ConfigWaitThreshold, Content: "90", Enable: true}, "spec.content", "90s or 2m"},
		"a time-out of less than a second is refused":     {OpsConfigInfoSpec{Type: ConfigPreTimeout, Content: "999ms", Enable: true}, "spec.content", "out of range"},
		"a time-out of more than a day is refused":        {OpsConfigInfoSpec{Type: ConfigPostTimeout, Content: "24h1s", Enable: true}, "spec.content", "out of range"},
		"an order's time-out is a duration":               {spec: OpsConfigInfoSpec{Type: ConfigOrderTimeout, Content: "2m", Enable: true}},
		"self-healing needs no duration":                  {spec: OpsConfigInfoSpec{Type: ConfigSelfHealing, Enable: true}},
		"self-healing may have one":                       {spec: OpsConfigInfoSpec{Type: ConfigSelfHealing, Content: "5m", Enable: true}},
		"self-healing refuses what is none":               {OpsConfigInfoSpec{Type: ConfigSelfHealing, Content: "5", Enable: true}, "spec.content", "90s or 2m"},
		"automatic rollback refuses a content":            {OpsConfigInfoSpec{Type: ConfigAutomaticRollback, Content: "on", Enable: true}, "spec.content", "use enable"},
		"the history's limit is a number":                 {spec: OpsConfigInfoSpec{Type: ConfigHistoryLimit, Content: "3", Enable: true}},
		"a history of nothing is refused":                 {OpsConfigInfoSpec{Type: ConfigHistoryLimit, Content: "0", Enable: true}, "spec.content", "from 1 to 100"},
		"a release check has a time-out":                  {spec: OpsConfigInfoSpec{Type: ConfigReleaseCheck, Content: "1500ms", Enable: true}},
		"a release check need not say one":                {spec: OpsConfigInfoSpec{Type: ConfigReleaseCheck, Enable: true}},
		"a release check ends before the API server's":    {OpsConfigInfoSpec{Type: ConfigReleaseCheck, Content: "4001ms", Enable: true}, "spec.content", "100ms to 4s, because the API server waits 5s"},
		"a release check takes some time":                 {OpsConfigInfoSpec{Type: ConfigReleaseCheck, Content: "99ms", Enable: true}, "spec.content", "100ms to 4s"},
		"a release check without a unit is refused":       {OpsConfigInfoSpec{Type: ConfigReleaseCheck, Content: "2", Enable: true}, "spec.content", "for example 2s"},
		"an unchecked release may pass":                   {spec: OpsConfigInfoSpec{Type: ConfigReleaseCheckNoVerdict, Content: "Pass", Enable: true}},
		"an unchecked release may fail":                   {spec: OpsConfigInfoSpec{Type: ConfigReleaseCheckNoVerdict, Content: "Fail", Enable: true}},
		"an unchecked release cannot be held":             {OpsConfigInfoSpec{Type: ConfigReleaseCheckNoVerdict, Content: "Hold", Enable: true}, "spec.content", "Hold has no meaning here"},
		"an unchecked release may do nothing else":        {OpsConfigInfoSpec{Type: ConfigReleaseCheckNoVerdict, Content: "pass", Enable: true}, "spec.content", "write Pass or Fail"},
		"an unknown type is refused and the known listed": {OpsConfigInfoSpec{Type: "isblockingup", Enable: true}, "spec.type", "isBlockingUp, isBranch"},
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
				t.Fatal("admitted")
			}
			if diff := cmp.Diff([]string{tc.field}, err.Paths); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("said %q, which does not have %q", err, tc.says)
			}
		})
	}
}

func TestEveryConfigTypeIsKnownAndHasADefaultThatIsValid(t *testing.T) {
	for _, name := range ConfigTypes() {
		c := &OpsConfigInfo{Spec: OpsConfigInfoSpec{Type: ConfigType(name)}}
		if err := c.Validate(t.Context()); err != nil {
			t.Errorf("%s, disabled and empty: %v", name, err)
		}
	}
}

func TestAnInvalidOpsConfigInfoCanBeDeletedAndGetAStatus(t *testing.T) {
	c := &OpsConfigInfo{Spec: OpsConfigInfoSpec{Type: "nonsense"}}
	if err := c.Validate(apis.WithinDelete(t.Context())); err != nil {
		t.Error(err)
	}
	if err := c.Validate(apis.WithinSubResourceUpdate(t.Context(), c, "status")); err != nil {
		t.Error(err)
	}
}
