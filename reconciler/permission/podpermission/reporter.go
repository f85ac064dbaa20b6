package podpermission

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
	leakCentre      = "centre"      // the centre reports the grant as leaked: the provider cannot revoke, calls to it failed, or another pod needs the grant
	leakUnreachable = "unreachable" // the centre could not be called, or rejected the call, until the deadline
	leakDeadline    = "deadline"    // not revoked before the deadline
	leakLost        = "lost"        // the centre has no applications of the pod
	leakRenamed     = "renamed"     // the pod has grants under another name of its cluster
)

// revocation reports the result of a revocation.
func (r *reporter) revocation(ctx context.Context, p *corev1.Pod, s Revocation, err error) {
	if len(s.Revoked) > 0 {
		r.revokedSets(ctx, p, s.Revoked)
	}
	for _, app := range s.Leaked {
		r.leak(ctx, p, app, leakCentre, fmt.Sprintf("permission set %s could not be revoked: %s", app.Set, leakMessage(app)))
	}
	if s.Action != GiveUp {
		return
	}
	for _, app := range s.Unfinished {
		r.leak(ctx, p, app, leakDeadline, fmt.Sprintf("permission set %s was not revoked before the deadline: it is %s; the permission centre retries", app.Set, app.State))
	}
	switch {
	case s.HasOrAwaitsGrantUnder != "":
		// The grants may be for an earlier address, so the leak names none.
		r.leak(ctx, p, api.Application{}, leakRenamed, fmt.Sprintf("the pod also has or requests permissions under cluster name %[1]s; this cluster does not revoke them. If this cluster was renamed from %[1]s: "+
			"set key cluster of ConfigMap config-permission to %[1]s again, or revoke the applications of this pod under %[1]s. If %[1]s is another cluster, of which this one is a copy: do nothing", s.HasOrAwaitsGrantUnder))
	case s.NoApplications:
		r.leak(ctx, p, podApplication(p), leakLost, fmt.Sprintf("the permission centre has no application of the pod, although permission sets %s were granted to it, so they may still be granted; "+
			"check the store of the centre and the key cluster of ConfigMap config-permission", strings.Join(podmeta.Sets(p), ", ")))
	case err != nil:
		r.leak(ctx, p, podApplication(p), leakUnreachable, fmt.Sprintf("the permission centre could not revoke before the deadline, so the permissions may still be granted: %v", err))
	}
}

func (r *reporter) revokedSets(ctx context.Context, p *corev1.Pod, all []api.Application) {
	for _, app := range all {
		r.revoked.Add(ctx, 1)
		delivery.SendBestEffort(ctx, r.sender, podmeta.PermissionEvent(events.PermissionRevoked, p, app))
	}
	r.recorder.Eventf(p, corev1.EventTypeNormal, podmeta.ReasonPermissionRevoked, "the pod needs %s at %s no longer", setNames(all), strings.Join(podmeta.IPs(p), ", "))
}

// podApplication returns a placeholder application, with the pod's addresses only, for a leak of
// the whole pod.
func podApplication(p *corev1.Pod) api.Application {
	return api.Application{ApplicationRequest: api.ApplicationRequest{PodIPs: podmeta.IPs(p)}}
}

func (r *reporter) leak(ctx context.Context, p *corev1.Pod, app api.Application, reason, message string) {
	sets := 1
	if app.Set == "" {
		sets = max(1, len(podmeta.Sets(p))) // which of them are granted is not known
	}
	r.leaked.Add(ctx, int64(sets), reason)
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
			parts = append(parts, fmt.Sprintf("permission %s: %s (ask %s)", p.Permission, p.Message, p.Owner))
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
