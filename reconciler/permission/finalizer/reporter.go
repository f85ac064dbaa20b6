package finalizer

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/metric"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/delivery"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

// reporter reports the result of revocations as Events, CloudEvents and metrics.
type reporter struct {
	recorder record.EventRecorder
	sender   events.Sender
	// revoked and leaked count permission sets.
	revoked, leaked metrics.Counter
}

func newReporter(recorder record.EventRecorder, sender events.Sender, meter metric.Meter) *reporter {
	return &reporter{
		recorder: recorder, sender: sender,
		revoked: metrics.NewCounter(meter, "breakwater_permission_sets_revoked_total"),
		leaked:  metrics.NewCounter(meter, "breakwater_permission_sets_leaked_total"),
	}
}

// The reasons of a leak, as metric labels.
const (
	leakProvider    = "provider"    // the provider cannot revoke
	leakUnreachable = "unreachable" // the centre was unreachable until the deadline
	leakDeadline    = "deadline"    // not revoked before the deadline
	leakLost        = "lost"        // the centre has no applications of the pod
	leakRenamed     = "renamed"     // the pod has grants under another name of its cluster
)

// revocation reports the result of a revocation.
func (r *reporter) revocation(ctx context.Context, p *corev1.Pod, s Revocation, err error) {
	for _, app := range s.Revoked {
		r.revoked.Add(ctx, 1)
		delivery.SendBestEffort(ctx, r.sender, podmeta.PermissionEvent(events.PermissionRevoked, p, app))
	}
	if n := len(s.Revoked); n > 0 {
		r.recorder.Eventf(p, corev1.EventTypeNormal, podmeta.ReasonPermissionRevoked, "revoked %s from %s", setNames(s.Revoked), strings.Join(podmeta.IPs(p), ", "))
	}
	for _, app := range s.Leaked {
		r.leak(ctx, p, app, leakProvider, fmt.Sprintf("permission set %s could not be revoked: %s", app.Set, leakMessage(app)))
	}
	if s.HeldUnder != "" {
		r.leak(ctx, p, podApplication(p), leakRenamed, fmt.Sprintf("permissions of the pod are held under another name of its cluster, %s; restore the name (key cluster of ConfigMap config-permission), "+
			"or revoke the applications of that name", s.HeldUnder))
	}
	if s.Action != GiveUp {
		return
	}
	if len(s.Unfinished) == 0 {
		reason, message := leakUnreachable, "the permission centre was unreachable until the deadline, so the permissions may still be granted"
		switch {
		case s.Lost:
			reason, message = leakLost, fmt.Sprintf("the permission centre has no application of the pod, although permission sets %s were granted to it, so they may still be granted; "+
				"check the store of the centre and the key cluster of ConfigMap config-permission", strings.Join(podmeta.Sets(p), ", "))
		case err != nil:
			message += ": " + err.Error()
		}
		r.leak(ctx, p, podApplication(p), reason, message)
	}
	for _, app := range s.Unfinished {
		r.leak(ctx, p, app, leakDeadline, fmt.Sprintf("permission set %s was not revoked before the deadline: it is %s; the permission centre retries", app.Set, app.State))
	}
}

// podApplication returns an application for the leak of a pod whose applications are unknown.
func podApplication(p *corev1.Pod) api.Application {
	return api.Application{ApplicationRequest: api.ApplicationRequest{PodIPs: podmeta.IPs(p)}}
}

func (r *reporter) leak(ctx context.Context, p *corev1.Pod, app api.Application, reason, message string) {
	r.leaked.Add(ctx, 1, reason)
	r.recorder.Event(p, corev1.EventTypeWarning, podmeta.ReasonPermissionLeaked, message)
	d := podmeta.PermissionEvent(events.PermissionLeaked, p, app)
	d.Reason, d.Message = podmeta.ReasonPermissionLeaked, message
	delivery.SendBestEffort(ctx, r.sender, d)
}

// leakMessage lists the leaked permissions and whom to ask.
func leakMessage(app api.Application) string {
	var parts []string
	for _, p := range app.Permissions {
		if p.State == api.Leaked {
			parts = append(parts, fmt.Sprintf("permission %s %s, ask %s", p.Permission, p.Message, p.Owner))
		}
	}
	if len(parts) == 0 {
		return app.Message
	}
	return strings.Join(parts, "; ")
}

func setNames(all []api.Application) string {
	var names []string
	for _, app := range all {
		names = append(names, app.Set)
	}
	return "permission set " + strings.Join(names, ", ")
}
