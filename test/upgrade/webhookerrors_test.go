package upgrade

import (
	"maps"
	"strings"
	"testing"
)

func TestCallErrorsAreThoseOfOurWebhooksAndNoDenials(t *testing.T) {
	const metrics = `# TYPE apiserver_admission_webhook_fail_open_count counter
apiserver_admission_webhook_fail_open_count{name="ours.kb.io",type="admit"} 2
apiserver_admission_webhook_fail_open_count{name="theirs.example.com",type="admit"} 3
# TYPE apiserver_admission_webhook_rejection_count counter
apiserver_admission_webhook_rejection_count{error_type="calling_webhook_error",name="ours.kb.io",operation="CREATE",rejection_code="0",type="validating"} 1
apiserver_admission_webhook_rejection_count{error_type="calling_webhook_error",name="ours.kb.io",operation="UPDATE",rejection_code="0",type="validating"} 4
apiserver_admission_webhook_rejection_count{error_type="no_error",name="ours.kb.io",operation="UPDATE",rejection_code="403",type="validating"} 7
`
	got, err := CallErrors(strings.NewReader(metrics), map[string]bool{"ours.kb.io": true})
	if want := map[string]int{"ours.kb.io Ignore": 2, "ours.kb.io Fail calling_webhook_error": 5}; err != nil || !maps.Equal(got, want) {
		t.Errorf("call errors are %v (%v), want %v", got, err, want)
	}
	if _, err := CallErrors(strings.NewReader("no metrics"), nil); err == nil {
		t.Error("no error")
	}
}
