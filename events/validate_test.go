package events

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func TestValidationErrorsNameTheField(t *testing.T) {
	pod := func(f func(*PodFinished)) Data { d := samples()[0].(PodFinished); f(&d); return d }
	ready := func(f func(*ChangePodReady)) Data { d := samples()[1].(ChangePodReady); f(&d); return d }
	judged := func(f func(*ChangePodVerdict)) Data { d := verdict(); f(&d); return d }
	work := func(f func(*ChangeWorkload)) Data { d := changeWorkload(VerbSuspended); f(&d); return d }
	step := func(f func(*OrderReady)) Data { d := samples()[3].(OrderReady); f(&d); return d }
	progressed := func(f func(*ChangeWorkload)) Data { d := changeWorkload(VerbProgressed); f(&d); return d }
	denied := func(f func(*ReleaseDenied)) Data { d := samples()[12].(ReleaseDenied); f(&d); return d }
	granted := func(f func(*Permission)) Data { d := permission(PermissionGranted); f(&d); return d }
	opened := func(f func(*PodBreaker)) Data { d := breaker(PodBreakerOpened); f(&d); return d }
	guard := func(f func(*DeletionDenied)) Data { d := deletionDenied(); f(&d); return d }
	flow := func(f func(*DeletionFlow)) Data { d := deletionFlow(true); f(&d); return d }
	for want, d := range map[string]Data{
		"ips:":                  granted(func(d *Permission) { d.IPs = []string{"here"} }),
		"set:":                  granted(func(d *Permission) { d.Set = "a/b" }),
		"atUnix:":               opened(func(d *PodBreaker) { d.AtUnix = 0 }),
		"denied:":               opened(func(d *PodBreaker) { d.Denied = -1 }),
		"guard.apiVersion:":     guard(func(d *DeletionDenied) { d.DeniedBy.APIVersion = "" }),
		"guard.kind:":           guard(func(d *DeletionDenied) { d.DeniedBy.Kind = "a b" }),
		"guard.namespace:":      guard(func(d *DeletionDenied) { d.DeniedBy.Namespace = "a/b" }),
		"guard.name:":           guard(func(d *DeletionDenied) { d.DeniedBy.Name = "" }),
		"guard.uid:":            guard(func(d *DeletionDenied) { d.DeniedBy.UID = "" }),
		"slotUnix: Invalid":     guard(func(d *DeletionDenied) { d.PeriodUnix++ }),
		"operation:":            guard(func(d *DeletionDenied) { d.Operation = "" }),
		"object:":               guard(func(d *DeletionDenied) { d.Object = "../x" }),
		"sinceUnix:":            flow(func(d *DeletionFlow) { d.SinceUnix = 0 }),
		"deleted:":              flow(func(d *DeletionFlow) { d.Deleted = -1 }),
		"ratioTenths:":          flow(func(d *DeletionFlow) { d.RatioTenths = -1 }),
		"suspected:":            flow(func(d *DeletionFlow) { d.Suspected = strings.Repeat("a", 64) }),
		"reason: Required":      flow(func(d *DeletionFlow) { d.Reason = "" }),
		"namespace:":            pod(func(d *PodFinished) { d.Namespace = "a/b" }),
		"pod:":                  pod(func(d *PodFinished) { d.Pod = "" }),
		"podUid:":               pod(func(d *PodFinished) { d.PodUID = "a b" }),
		"workload.apiVersion:":  pod(func(d *PodFinished) { d.Workload.APIVersion = "a/b/c" }),
		"workload.kind:":        pod(func(d *PodFinished) { d.Workload.Kind = "" }),
		"workload.name:":        pod(func(d *PodFinished) { d.Workload.Name = "../x" }),
		"version:":              pod(func(d *PodFinished) { d.Version = strings.Repeat("a", 64) }),
		"attempt:":              pod(func(d *PodFinished) { d.Attempt = -1 }),
		"name:":                 ready(func(d *ChangePodReady) { d.Name = "A" }),
		"uid:":                  ready(func(d *ChangePodReady) { d.UID = types.UID(strings.Repeat("a", 129)) }),
		"changeWorkload:":       ready(func(d *ChangePodReady) { d.ChangeWorkload = "" }),
		"stage:":                ready(func(d *ChangePodReady) { d.Stage = "pre" }),
		"changePod:":            ready(func(d *ChangePodReady) { d.ChangePod = &v1alpha1.ChangePod{} }),
		"changePod: Invalid":    judged(func(d *ChangePodVerdict) { d.ChangePod = &v1alpha1.ChangePod{} }),
		"bizExecOrderId:":       judged(func(d *ChangePodVerdict) { d.BizExecOrderID = strings.Repeat("a", 129) }),
		"nodeId:":               judged(func(d *ChangePodVerdict) { d.NodeID = "" }),
		"verdict:":              judged(func(d *ChangePodVerdict) { d.Verdict = strings.Repeat("a", 64) }),
		"podResults[1].pod:":    judged(func(d *ChangePodVerdict) { d.PodResults[1].Pod = d.PodResults[0].Pod }),
		"podResults[1].verdict": judged(func(d *ChangePodVerdict) { d.PodResults[1].Verdict = strings.Repeat("a", 64) }),
		"time:":                 judged(func(d *ChangePodVerdict) { d.Time = metav1.MicroTime{} }),
		"verb:":                 work(func(d *ChangeWorkload) { d.Verb = "won" }),
		"entryTimeUnix:":        work(func(d *ChangeWorkload) { d.EntryTimeUnix = 0 }),
		"step:":                 step(func(d *OrderReady) { d.Step = "End" }),
		"slotUnix:":             progressed(func(d *ChangeWorkload) { d.ProgressUnix = 0 }),
		"reason:":               work(func(d *ChangeWorkload) { d.Reason = strings.Repeat("a", 129) }),
		"requestUid:":           denied(func(d *ReleaseDenied) { d.RequestUID = "" }),
		"user:":                 denied(func(d *ReleaseDenied) { d.User = "" }),
	} {
		t.Run(want, func(t *testing.T) {
			_, err := New(d)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one for field %s", err, want)
			}
		})
	}
}
