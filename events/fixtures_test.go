package events

import (
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	policyv1alpha1 "github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

const version = "5d41402abc4b2a76b9719d911017c592"

func deployment() Workload {
	return Workload{APIVersion: "apps/v1", Kind: "Deployment", Name: "sleep"}
}

// samples returns data of each type, in the order of Types.
func samples() []Data {
	all := []Data{
		PodFinished{
			Namespace: "default",
			Pod:       "sleep-7d9c5b4f5d-x2k9q",
			PodUID:    "0a1b2c3d-0000-4000-8000-000000000001",
			Workload:  deployment(),
			Version:   version,
			Attempt:   3,
		},
		ChangePodReady{
			Namespace:      "default",
			Name:           "sleep--x--" + version + "--x--1",
			UID:            "0a1b2c3d-0000-4000-8000-000000000002",
			ChangeWorkload: "sleep--x--" + version,
			Version:        version,
			Attempt:        3,
			Stage:          v1alpha1.StagePre,
		},
		verdict(),
		OrderReady{
			Namespace: "default",
			Name:      "sleep--x--" + version,
			UID:       "0a1b2c3d-0000-4000-8000-000000000003",
			Version:   version,
			Attempt:   3,
			Step:      v1alpha1.OrderStepFinish,
		},
		orderVerdict(),
	}
	for _, verb := range []Verb{
		VerbStarted, VerbProgressed, VerbSucceeded, VerbSuspended, VerbFailed, VerbRolledBack, VerbBypassed,
	} {
		all = append(all, changeWorkload(verb))
	}
	all = append(all, ReleaseDenied{
		RequestUID: "0a1b2c3d-0000-4000-8000-000000000004",
		Namespace:  "default",
		Workload:   deployment(),
		User:       "jane",
		Reason:     v1alpha1.ReasonReleaseDenied,
		Message:    "deployment sleep is suspended",
	})
	for _, verb := range []PermissionVerb{PermissionRequested, PermissionGranted, PermissionDenied, PermissionRevoked, PermissionLeaked} {
		all = append(all, permission(verb))
	}
	all = append(all, breaker(PodBreakerOpened), breaker(PodBreakerClosed))
	return append(all, deletionDenied(), deletionFlow(true), deletionFlow(false))
}

func permission(verb PermissionVerb) Permission {
	d := Permission{
		Verb:        verb,
		Namespace:   "default",
		Pod:         "sleep-7d9c5b4f5d-x2k9q",
		PodUID:      "0a1b2c3d-0000-4000-8000-000000000001",
		IPs:         []string{"10.1.2.3", "fd00::3"},
		Set:         "orders",
		Application: "0a1b2c3d-0000-4000-8000-000000000005",
		Attempt:     2,
	}
	if verb == PermissionDenied {
		d.Reason, d.Message = "PermissionDenied", "orders-db: there is no such table"
	}
	return d
}

func breaker(verb PodBreakerVerb) PodBreaker {
	d := PodBreaker{
		Verb:      verb,
		Namespace: "default",
		Pod:       "sleep-7d9c5b4f5d-x2k9q",
		PodUID:    "0a1b2c3d-0000-4000-8000-000000000001",
		AtUnix:    1_767_323_045,
		Denied:    3,
		Reason:    "BreakerOpenDenied",
		Message:   "orders-db: there is no such table",
	}
	if verb == PodBreakerClosed {
		d.Reason, d.User = "BreakerClosed", "jane"
	}
	return d
}

func deletionDenied() DeletionDenied {
	return DeletionDenied{
		DeniedBy: Denier{APIVersion: "policy.kruise.io/v1alpha1", Kind: "PodUnavailableBudget", Namespace: "default", Name: "sleep",
			UID: "0a1b2c3d-0000-4000-8000-000000000005"},
		PeriodUnix: 1_767_323_040,
		Operation:  "EVICT",
		Namespace:  "default",
		Object:     "sleep-7d9c5b4f5d-x2k9q",
		User:       "jane",
		Reason:     policyv1alpha1.ReasonDisruptionDenied,
		Message:    "EVICT of pod sleep-7d9c5b4f5d-x2k9q is denied by PodUnavailableBudget sleep",
	}
}

func deletionFlow(open bool) DeletionFlow {
	d := DeletionFlow{Open: open, Name: "cluster", UID: "0a1b2c3d-0000-4000-8000-000000000006", SinceUnix: 1_767_323_045,
		Deleted: 12, Reason: policyv1alpha1.ReasonWithinLimit}
	if open {
		d.Deleted, d.RatioTenths, d.Suspected, d.RoomUnix = 100, 250, "mass-delete", 1_767_323_345
		d.Reason, d.Message = policyv1alpha1.ReasonLimitHit, "100 deletions in 10m (limit 100)"
	}
	return d
}

func verdict() ChangePodVerdict {
	return ChangePodVerdict{
		Namespace:      "default",
		Name:           "sleep--x--" + version + "--x--1",
		UID:            "0a1b2c3d-0000-4000-8000-000000000002",
		ChangeWorkload: "sleep--x--" + version,
		Version:        version,
		BizExecOrderID: "demo/default/Deployment/sleep/" + version + "/3",
		NodeID:         "node-17",
		Stage:          v1alpha1.StagePost,
		Verdict:        "fail",
		Message:        "error rate above 1 %",
		PodResults: []v1alpha1.PodSummary{
			{Pod: "sleep-7d9c5b4f5d-x2k9q", Verdict: "fail", Message: "find error"},
			{Pod: "sleep-7d9c5b4f5d-abcde", Verdict: "pass"},
		},
		Time: metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)),
	}
}

func orderVerdict() OrderVerdict {
	return OrderVerdict{
		Namespace:      "default",
		Name:           "sleep--x--" + version,
		UID:            "0a1b2c3d-0000-4000-8000-000000000003",
		Version:        version,
		BizExecOrderID: "demo/default/Deployment/sleep/" + version + "/3",
		NodeID:         "node-1",
		Stage:          v1alpha1.StagePre,
		Verdict:        "fail",
		Message:        "a change freeze is in force",
		Time:           metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)),
	}
}

func changeWorkload(verb Verb) ChangeWorkload {
	d := ChangeWorkload{
		Verb:          verb,
		Namespace:     "default",
		Name:          "sleep--x--" + version,
		UID:           "0a1b2c3d-0000-4000-8000-000000000003",
		Workload:      deployment(),
		Version:       version,
		Attempt:       3,
		OrderID:       "demo/default/Deployment/sleep/" + version + "/3",
		AppName:       "sleep",
		Status:        v1alpha1.ReleaseSuspend,
		EntryTimeUnix: 1_767_323_045,
		Reason:        v1alpha1.ReasonCheckFailed,
		Message:       "1 of 10 pods failed",
		Counts:        v1alpha1.PodCounts{Pods: 10, Preparing: 4, Checking: 2, Passed: 3, Failed: 1},
	}
	switch verb {
	case VerbBypassed:
		d.User = "jane"
	case VerbProgressed:
		d.ProgressUnix = 1_767_323_040
	}
	return d
}

// short returns a type without the common prefix and the version.
func short(eventType string) string {
	return strings.TrimSuffix(strings.TrimPrefix(eventType, "dev.breakwater."), ".v1")
}

func parse(e cloudevents.Event) (Data, error) {
	switch e.Type() {
	case TypePodFinished:
		return ParsePodFinished(e)
	case TypeChangePodReady:
		return ParseChangePodReady(e)
	case TypeChangePodVerdict:
		return ParseChangePodVerdict(e)
	case TypeOrderReady:
		return ParseOrderReady(e)
	case TypeOrderVerdict:
		return ParseOrderVerdict(e)
	case TypeReleaseDenied:
		return ParseReleaseDenied(e)
	case TypePermissionRequested, TypePermissionGranted, TypePermissionDenied, TypePermissionRevoked, TypePermissionLeaked:
		return ParsePermission(e)
	case TypeBreakerOpened, TypeBreakerClosed:
		return ParsePodBreaker(e)
	case TypeDeletionDenied:
		return ParseDeletionDenied(e)
	case TypeDeletionFlowOpened, TypeDeletionFlowClosed:
		return ParseDeletionFlow(e)
	default:
		return ParseChangeWorkload(e)
	}
}
