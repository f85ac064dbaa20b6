package changeworkload

import (
	"cmp"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/text"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// maxStuckText is the limit of Workload.Stuck: a message with it must fit into an announcement.
const maxStuckText = maxAnnouncementText / 2

// kruiseRolloutLabel is on a Deployment while OpenKruise Rollouts rolls it out by partition.
const kruiseRolloutLabel = "rollouts.kruise.io/controlled-by-advanced-deployment-controller"

// podsOf returns those pods of a release that are neither terminating nor completed.
func podsOf(all []*corev1.Pod, c *v1alpha1.ChangeWorkload, w *workload.Workload) []Pod {
	var out []Pod
	for _, p := range all {
		if workload.PodActive(p) {
			out = append(out, podOf(p, c, w))
		}
	}
	return out
}

func podOf(p *corev1.Pod, c *v1alpha1.ChangeWorkload, w *workload.Workload) Pod {
	host := cmp.Or(ptr.Deref(p.Spec.HostnameOverride, ""), p.Spec.Hostname, p.Name)
	since, ready := workload.PodReadySince(p)
	// An update in place keeps the label of the former version. Pods have the label of their template
	// from their creation.
	wasReady := hasFinishedLabel(p.Labels) && !w.Kind.UpdatesInPlace() && !hasFinishedLabel(w.Template.Labels)
	return Pod{
		PodSummary: v1alpha1.PodSummary{
			App: c.Spec.AppName, HostName: host, WorkSpace: p.Namespace, Pod: p.Name,
			IP: p.Status.PodIP, Namespace: p.Namespace, UID: p.UID,
		},
		Finished:   ready || wasReady,
		ReadySince: since,
		Created:    p.CreationTimestamp.Time,
	}
}

// hasFinishedLabel reports whether the labels of a pod, or of a template, have FinishedLabel.
func hasFinishedLabel(labels map[string]string) bool {
	return labels[v1alpha1.FinishedLabel] == v1alpha1.FinishedValue
}

// workloadOf returns the part of a workload that a decision depends on. Its replicas do not
// include pods on nodes that are not Ready.
func workloadOf(w *workload.Workload, notReady workload.ExcludedNodes) Workload {
	replicas, unavailable, updated := w.Without(notReady)
	attempt, err := strconv.ParseInt(w.Annotations[v1alpha1.AttemptAnnotation], 10, 64)
	if err != nil {
		attempt = -1 // no annotation: no ChangeWorkload is current
	}
	hold := v1alpha1.HoldOf(w.Annotations)
	stuck := ""
	if w.Stuck != "" {
		stuck = text.Truncate(w.Kind.Kind+" reports "+w.Stuck, maxStuckText)
	}
	out := Workload{
		Version:          w.Labels[v1alpha1.VersionKey],
		Attempt:          attempt,
		Replicas:         replicas,
		Updated:          updated,
		Surged:           w.Surged(),
		Unavailable:      unavailable,
		Misscheduled:     max(0, w.Misscheduled()-notReady.Misscheduled),
		Stuck:            stuck,
		Suspend:          v1alpha1.SuspensionOf(w.Labels),
		Hold:             hold,
		Bypass:           v1alpha1.CurrentBypassOf(w.Labels, w.Annotations),
		HasDefenseStatus: w.Labels[v1alpha1.DefenseStatusLabel] == v1alpha1.DefenseStatusProcessed,

		IsRollback:     v1alpha1.IsRollback(w.Annotations),
		KnativeService: w.Kind.Counts == workload.CountRevision,
		Traffic:        w.Traffic,

		OfKruiseRollout: w.Labels[kruiseRolloutLabel] != "",
	}
	out.HoldState = holdStateOf(w, hold, out.complete())
	return out
}

// complete reports whether the rollout of the current version is complete and every desired pod is available.
func (w Workload) complete() bool { return w.Updated && w.Unavailable <= 0 }

// holdStateOf returns the state of a hold, which may be nil. complete is without the pods on nodes that are not Ready.
func holdStateOf(w *workload.Workload, hold *v1alpha1.Hold, complete bool) HoldState {
	switch {
	case hold == nil || w.PausedOrHeld():
		return HoldInForce
	case !w.Kind.HoldChangedNothing(hold.Former):
		return HoldResumed
	case w.HasOldPods() && !complete && len(w.Stop()) > 0:
		return HoldPauseEnded
	default:
		return HoldInForce
	}
}

// judging returns the workload of a release of which some pods are judged and later ones are not. Later pods do not count as
// desired, and the release does not wait until they are available. It waits for judged pods that are not Ready, also while
// later pods are available. A Knative Service has at least as many desired pods as judged ones, because its autoscaler
// decides the number.
func (w Workload) judging(judged []Pod, later int) Workload {
	if w.KnativeService {
		w.Replicas = max(w.Replicas, int32(len(judged)))
		return w
	}
	unready := int32(0)
	for _, p := range judged {
		if p.ReadySince.IsZero() && !p.OnNotReadyNode {
			unready++
		}
	}
	w.Replicas -= int32(later)
	w.Unavailable = max(w.Unavailable-int32(later), min(w.Unavailable, unready))
	return w
}

// judgesBeforeTraffic reports whether a new Revision of a Knative Service gets no traffic until
// its first batch passed. The setting of the Service precedes that of the namespace.
func judgesBeforeTraffic(w *workload.Workload, ns *corev1.Namespace) bool {
	if w.Kind.Revisions != workload.KnativeRevisions {
		return false
	}
	on, known := v1alpha1.JudgesBeforeTraffic(w.Annotations)
	if !known {
		on, _ = v1alpha1.JudgesBeforeTraffic(ns.Annotations)
	}
	return on
}
