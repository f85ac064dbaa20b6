package deletionflow

import (
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/tools/record"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/admission/admissiontest"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
)

func TestAFlowControlIsValidatedBeforeItIsStored(t *testing.T) {
	closed := func(seconds int) func(*v1alpha1.PodDeletionFlowControl) {
		return func(f *v1alpha1.PodDeletionFlowControl) {
			f.Annotations = map[string]string{v1alpha1.ClosedAnnotation: zero.Add(time.Duration(seconds) * time.Second).UTC().Format(time.RFC3339)}
		}
	}
	for name, tc := range map[string]struct {
		before, after *v1alpha1.PodDeletionFlowControl
		dryRun        bool
		denial, event string
	}{
		"a valid flow control":        {nil, newFlow("cluster", 1, nil), false, "", ""},
		"an invalid rule":             {nil, newFlow("cluster", -1, nil), false, "spec.limitRules[0].limit", ""},
		"closed manually":             {newFlow("cluster", 1, nil), newFlow("cluster", 1, closed(-1)), false, "", "ann asked to close the breaker"},
		"closed in a dry run":         {newFlow("cluster", 1, nil), newFlow("cluster", 1, closed(-1)), true, "", ""},
		"closed before":               {newFlow("cluster", 1, closed(-1)), newFlow("cluster", 2, closed(-1)), false, "", ""},
		"created with the annotation": {nil, newFlow("cluster", 1, closed(-1)), false, "", "ann asked to close the breaker"},
		"a clock slightly ahead":      {newFlow("cluster", 1, nil), newFlow("cluster", 1, closed(9)), false, "", "ann asked to close the breaker"},
		"a time in the future":        {newFlow("cluster", 1, nil), newFlow("cluster", 1, closed(3600)), false, "is in the future", ""},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := record.NewFakeRecorder(1)
			req := newRequest(admissionv1.Update, "poddeletionflowcontrols", "cluster")
			req.Object, req.DryRun = builder.Raw(t, tc.after), new(tc.dryRun)
			if tc.before != nil {
				req.OldObject = builder.Raw(t, tc.before)
			}
			answer := ObjectHandler{Clock: testingclock.NewFakePassiveClock(zero), Recorder: recorder}.Admit(t.Context(), req)
			if answer.Response.Allowed != (tc.denial == "") {
				t.Fatalf("%+v", answer.Response)
			}
			if r := answer.Response.Result; r != nil && (!strings.Contains(r.Message, tc.denial) || len(r.Details.Causes) != 1 || r.Details.Causes[0].Field == "" || r.Code != http.StatusUnprocessableEntity) {
				t.Errorf("%d %s", r.Code, r.Message)
			}
			close(recorder.Events)
			if emitted := <-recorder.Events; !strings.Contains(emitted, tc.event) || (tc.event == "") != (emitted == "") {
				t.Errorf("Event is %q", emitted)
			}
		})
	}
}

// The API server checks the schema before it calls the webhook.
func TestTheSchemaNamesExamplesOfIntervals(t *testing.T) {
	const want = "write an interval from 10s to 30d, for example 1m, 1h or 1d"
	crd := builder.Manifests[apiextensionsv1.CustomResourceDefinition](t, "../../../config/protection/101-crd-poddeletionflowcontrols.yaml")[1] // after the header of the file
	interval := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["limitRules"].Items.Schema.Properties["interval"]
	if interval.Pattern != "" || len(interval.XValidations) != 1 || interval.XValidations[0].Message != want {
		t.Fatalf("pattern %q, rules %+v, want the message %q", interval.Pattern, interval.XValidations, want)
	}
	rule := []admissionregistrationv1.MatchCondition{{Name: "interval", Expression: strings.ReplaceAll(interval.XValidations[0].Rule, "self", "object")}}
	for value, valid := range map[string]bool{"1m": true, "1d12h": true, "1.5h": true, "1 minute": false, "10": false, "1w": false} {
		if got := admissiontest.Matches(t, rule, map[string]any{"object": value}); got != valid {
			t.Errorf("%s is accepted: %t, want %t", value, got, valid)
		}
	}
}
