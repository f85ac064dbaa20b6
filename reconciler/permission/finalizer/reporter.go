package finalizer

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/delivery"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

// teller tells what became of permissions.
type reporter struct {
	recorder record.EventRecorder
	sender   events.Sender
	// revoked counts applications that were revoked, leaked those that were not,
	// by why.
	revoked, leaked metric.Int64Counter
}

func newReporter(recorder record.EventRecorder, sender events.Sender, meter metric.Meter) (*reporter, error) {
	revoked, err := meter.Int64Counter("breakwater.permission.revoked", metric.WithDescription("Permission sets that were taken back when their pod had ended"))
	if err != nil {
		return nil, fmt.Errorf("create counter: %w", err)
	}
	leaked, err := meter.Int64Counter("breakwater.permission.leaked", metric.WithDescription("Permission sets that could not be taken back when their pod had ended, by why"))
	if err != nil {
		return nil, fmt.Errorf("create counter: %w", err)
	}
	return &reporter{recorder, sender, revoked, leaked}, nil
}

// Why something leaked.
const (
	whyProvider    = "provider"    // the centre says that it cannot be taken back
	whyUnreachable = "unreachable" // the centre could not be asked until the deadline
	whyDeadline    = "deadline"    // it was not taken back until the deadline
)

// settled tells what became of all that a pod had.
func (t *reporter) revocation(ctx context.Context, p *corev1.Pod, s Revocation, err error) {
	for _, app := range s.Revoked {
		t.revoked.Add(ctx, 1)
		delivery.SendBestEffort(ctx, t.sender, podmeta.PermissionEvent(events.PermissionRevoked, p, app))
	}
	if n := len(s.Revoked); n > 0 {
		t.recorder.Eventf(p, corev1.EventTypeNormal, podmeta.ReasonPermissionRevoked, "%s taken back from %s", setNames(s.Revoked), strings.Join(podmeta.IPs(p), ", "))
	}
	for _, app := range s.Leaked {
		t.leak(ctx, p, app, whyProvider, fmt.Sprintf("permission set %s could not be taken back: %s", app.Set, leakMessage(app)))
	}
	if s.Action != GiveUp {
		return
	}
	if len(s.Unfinished) == 0 {
		message := "whether permissions were taken back is not known, the deadline is over"
		if err != nil {
			message += ": " + err.Error()
		}
		t.leak(ctx, p, api.Application{ApplicationRequest: api.ApplicationRequest{PodIPs: podmeta.IPs(p)}}, whyUnreachable, message)
	}
	for _, app := range s.Unfinished {
		t.leak(ctx, p, app, whyDeadline, fmt.Sprintf("permission set %s was not taken back until the deadline: it is %s; the centre goes on trying", app.Set, app.State))
	}
}

func (t *reporter) leak(ctx context.Context, p *corev1.Pod, app api.Application, why, message string) {
	t.leaked.Add(ctx, 1, metric.WithAttributes(attribute.String("why", why)))
	t.recorder.Event(p, corev1.EventTypeWarning, podmeta.ReasonPermissionLeaked, message)
	d := podmeta.PermissionEvent(events.PermissionLeaked, p, app)
	d.Reason, d.Message = podmeta.ReasonPermissionLeaked, message
	delivery.SendBestEffort(ctx, t.sender, d)
}

// messageOf names the permissions that are left, and whom to ask.
func leakMessage(app api.Application) string {
	var words []string
	for _, p := range app.Permissions {
		if p.State == api.Leaked {
			words = append(words, fmt.Sprintf("permission %s %s, ask %s", p.Permission, p.Message, p.Owner))
		}
	}
	if len(words) == 0 {
		return app.Message
	}
	return strings.Join(words, "; ")
}

func setNames(all []api.Application) string {
	var names []string
	for _, app := range all {
		names = append(names, app.Set)
	}
	return "permission set " + strings.Join(names, ", ")
}
