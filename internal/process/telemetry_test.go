package process_test

import (
	"testing"

	"knative.dev/pkg/observability/resource"
)

// Webhooks and controllers of Knative's sharedmain call this when they start. It panics if the
// schema of Knative's names differs from that of OpenTelemetry's SDK, whose version other modules
// raise, too.
func TestKnativeAcceptsTheVersionOfOpenTelemetry(t *testing.T) {
	t.Setenv("SYSTEM_NAMESPACE", "altershieldoperator-system")
	if resource.Default("controller") == nil {
		t.Error("no resource")
	}
}
