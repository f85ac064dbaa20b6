package admission_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/net"

	"github.com/breakwater-dev/breakwater/admission"
)

func TestCausesOfADenialAreWarningsOfLimitedLength(t *testing.T) {
	long := strings.Repeat("é", 600)
	a := admission.Deny("Denied", metav1.Status{}).WithWarnings([]metav1.StatusCause{{Message: "short"}, {Message: long}})
	got := a.Response.Warnings
	if len(got) != 2 || got[0] != "short" {
		t.Fatalf("warnings are %q", got)
	}
	if len(got[1]) > 1000 || !utf8.ValidString(got[1]) || !strings.HasSuffix(got[1], "...") {
		t.Errorf("the long warning is %d bytes: %q", len(got[1]), got[1])
	}
}

// The API server leaves out warnings that are not valid in a header.
func TestAReasonOfSeveralLinesIsAWarning(t *testing.T) {
	const message = "find error:\n\tconnection refused\r\nby \xff"
	got := admission.Allow("Admitted").Warn(message).Response.Warnings[0]
	if _, err := net.NewWarningHeader(299, "-", got); err != nil || !strings.Contains(got, "connection refused") {
		t.Errorf("%q: %v", got, err)
	}
}
