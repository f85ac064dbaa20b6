package deletionflow

import (
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/client-go/tools/record"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

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
			req.Object, req.DryRun = builder.Raw(t, tc.after), ptr.To(tc.dryRun)
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
