package diagnosis_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli/diagnosis"
	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

func TestAnExplanationOfAPodNamesThePermissionThatItWaitsFor(t *testing.T) {
	for name, tc := range map[string]struct {
		conditions []corev1.PodCondition
		state      diagnosis.State
		why        string
	}{
		"no permission is needed":       {nil, diagnosis.StateNotWaiting, "waits for no permission"},
		"all are granted":               {[]corev1.PodCondition{{Type: podmeta.ConditionAuthorized, Status: "True", Reason: "PermissionGranted", Message: "granted"}}, diagnosis.StateNotWaiting, "granted"},
		"one is applied for":            {[]corev1.PodCondition{{Type: podmeta.ConditionAuthorized, Status: "False", Reason: "PermissionApplying", Message: "orders waits"}}, diagnosis.StateRunning, "orders waits"},
		"one is denied":                 {[]corev1.PodCondition{{Type: podmeta.ConditionAuthorized, Status: "False", Reason: "BreakerOpenDenied", Message: "orders denied"}}, diagnosis.StateFailed, "orders denied"},
		"one failed three times":        {[]corev1.PodCondition{{Type: podmeta.ConditionAuthorized, Status: "False", Reason: "BreakerOpenFailed", Message: "3 attempts failed"}}, diagnosis.StateRunning, "3 attempts failed"},
		"the init container is missing": {[]corev1.PodCondition{{Type: podmeta.ConditionInjected, Status: "False", Reason: "PermissionNotInjected", Message: "not injected"}}, diagnosis.StateFailed, "not injected"},
	} {
		t.Run(name, func(t *testing.T) {
			e := diagnosis.ExplainPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: "shop"}, Status: corev1.PodStatus{Conditions: tc.conditions}})
			if e.State != tc.state || !strings.Contains(strings.Join(e.Why, "\n"), tc.why) || len(e.WaysOut) == 0 {
				t.Errorf("got %+v", e)
			}
		})
	}
}

func TestAnExplanationOfAPodSaysHowToSeeWhetherItsLabelDeniesItsDeletion(t *testing.T) {
	for value, want := range map[string]bool{"": false, v1alpha1.ProtectAlways: true} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: "shop", Labels: map[string]string{v1alpha1.DeleteProtectionLabel: value}}}
		e := diagnosis.ExplainPod(p)
		if got := slices.ContainsFunc(e.WaysOut, func(w diagnosis.WayOut) bool {
			return w.Command == "kubectl breakwater simulate delete pod/web-0 -n shop"
		}); got != want {
			t.Errorf("label %q: the ways out are %+v", value, e.WaysOut)
		}
	}
}

// Breakwater retries a failed permission itself; nothing has to be corrected.
func TestTheWaysOutOfAnOpenBreakerDependOnWhyItIsOpen(t *testing.T) {
	const correct, now = "have the permission corrected, then reset the breaker of the pod", "reset the breaker of the pod for an attempt at once"
	for reason, want := range map[string]string{
		podmeta.ReasonPermissionDenied: correct, podmeta.ReasonBreakerOpenDenied: correct,
		podmeta.ReasonBreakerOpenFailed: now, podmeta.ReasonPermissionFailed: "",
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: "shop"}}
		p.Status.Conditions = []corev1.PodCondition{{Type: podmeta.ConditionAuthorized, Status: "False", Reason: reason}}
		var got string
		for _, w := range diagnosis.ExplainPod(p).WaysOut {
			if strings.Contains(w.Do, "breaker") {
				got, _, _ = strings.Cut(w.Do, " (docs/")
			}
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", reason, got, want)
		}
	}
}

func TestTheNamespaceOfAPodIsEnabledBeforeThePodIsCreatedAgain(t *testing.T) {
	const label, remove = "kubectl label namespace shop stke.io/permission=enabled --overwrite", "kubectl delete pod web-0 -n shop"
	for reason, want := range map[string][]string{
		podmeta.ReasonNamespaceNotEnabled:   {label, remove},
		podmeta.ReasonPermissionNotInjected: {remove},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: "shop"}}
		p.Status.Conditions = []corev1.PodCondition{{Type: podmeta.ConditionInjected, Status: "False", Reason: reason}}
		var got []string
		for _, w := range diagnosis.ExplainPod(p).WaysOut {
			got = append(got, w.Command)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", reason, got, want)
		}
	}
}

// Its init container has not started, so it has no log.
func TestAnImageThatCannotBePulledIsExplained(t *testing.T) {
	const pull, correct = "private-registry", "INIT_ACTION_CLIENT_IMAGE"
	for reason, want := range map[string]string{"ErrImagePull": pull, "ImagePullBackOff": pull, "RegistryUnavailable": pull,
		"InvalidImageName": correct, "ErrImageNeverPull": correct, "ImageInspectError": correct, "SignatureValidationFailed": correct, "PodInitializing": "kubectl logs"} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: "shop", Labels: map[string]string{podmeta.Label: podmeta.LabelRequired}}}
		p.Spec.InitContainers = []corev1.Container{{Name: protocol.ContainerName}}
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: protocol.ContainerName,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "401 Unauthorized"}}}}
		e := diagnosis.ExplainPod(p)
		if told := strings.Contains(e.Why[0], reason+": 401 Unauthorized"); e.Reason != diagnosis.ReasonNotReported || told != (want == pull || want == correct) {
			t.Errorf("%s: got %s, %q", reason, e.Reason, e.Why)
		}
		if out := e.WaysOut[0]; !strings.Contains(out.Do+out.Command, want) {
			t.Errorf("%s: got %v, want %s", reason, out, want)
		}
	}
}

func TestAPodWithoutAConditionWaitsIfItNeedsPermissions(t *testing.T) {
	for name, tc := range map[string]struct {
		label  string
		phase  corev1.PodPhase
		state  diagnosis.State
		reason string
	}{
		"a pod that needs permissions": {podmeta.LabelRequired, corev1.PodPending, diagnosis.StateRunning, "NotReported"},
		"a pod that needs none":        {"", corev1.PodPending, diagnosis.StateNotWaiting, "NoPermissionNeeded"},
		"a new pod without a phase":    {podmeta.LabelRequired, "", diagnosis.StateRunning, "NotReported"},
		"a pod that runs":              {podmeta.LabelRequired, corev1.PodRunning, diagnosis.StateNotWaiting, "NoPermissionNeeded"},
		"a completed pod":              {podmeta.LabelRequired, corev1.PodFailed, diagnosis.StateNotWaiting, "NoPermissionNeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", Labels: map[string]string{podmeta.Label: tc.label}}, Status: corev1.PodStatus{Phase: tc.phase}}
			if e := diagnosis.ExplainPod(p); e.State != tc.state || e.Reason != tc.reason {
				t.Errorf("got %s, %s, want %s, %s", e.State, e.Reason, tc.state, tc.reason)
			}
		})
	}
}

func TestAnExplanationOfAGuardSaysWhetherItDeniesNow(t *testing.T) {
	budget := func(allowed int32, guarding corev1.ConditionStatus) *v1alpha1.PodUnavailableBudget {
		b := &v1alpha1.PodUnavailableBudget{}
		b.Name, b.Status.UnavailableAllowed, b.Status.TotalReplicas = "web", allowed, 3
		b.Status.Conditions = []apis.Condition{{Type: v1alpha1.BudgetSynced, Status: "True"}, {Type: v1alpha1.BudgetGuarding, Status: guarding, Reason: "Probing"}}
		return b
	}
	empty, uncomputed := budget(0, "True"), &v1alpha1.PodUnavailableBudget{}
	empty.Status.TotalReplicas, empty.Status.Conditions[0].Message = 0, "there is no Deployment webb"
	open := &v1alpha1.PodDeletionFlowControl{}
	open.Status.Conditions = []apis.Condition{{Type: v1alpha1.FlowControlOpen, Status: "True", Reason: v1alpha1.ReasonLimitHit, Message: "10 of 10 in 1m"}}
	inShadow, openInShadow := budget(0, "True"), open.DeepCopy()
	inShadow.Spec.Shadow, openInShadow.Spec.Shadow = true, true
	for name, tc := range map[string]struct {
		got   diagnosis.Explanation
		state diagnosis.State
		way   string
	}{
		"a budget with room":            {diagnosis.ExplainBudget(budget(1, "True")), diagnosis.StateAllowing, ""},
		"a budget without room":         {diagnosis.ExplainBudget(budget(0, "True")), diagnosis.StateDenying, "kubectl edit pub web"},
		"a budget that covers no pod":   {diagnosis.ExplainBudget(empty), diagnosis.StateAllowing, "kubectl edit pub web"},
		"a budget that is not computed": {diagnosis.ExplainBudget(uncomputed), diagnosis.StateFailed, "kubectl breakwater doctor"},
		"a shadow budget without room":  {diagnosis.ExplainBudget(inShadow), diagnosis.StateAllowing, ""},
		"a budget that is not enforced": {diagnosis.ExplainBudget(budget(1, "Unknown")), diagnosis.StateFailed, "kubectl breakwater doctor"},
		"a closed flow control":         {diagnosis.ExplainFlowControl(&v1alpha1.PodDeletionFlowControl{}), diagnosis.StateAllowing, ""},
		"an open flow control":          {diagnosis.ExplainFlowControl(open), diagnosis.StateDenying, "kubectl edit pdfc"},
		"an open shadow flow control":   {diagnosis.ExplainFlowControl(openInShadow), diagnosis.StateAllowing, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var commands []string
			for _, w := range tc.got.WaysOut {
				commands = append(commands, w.Command)
			}
			if tc.got.State != tc.state || !strings.Contains(strings.Join(commands, "\n"), tc.way) || (tc.way == "") != (len(commands) == 0) {
				t.Errorf("got %+v", tc.got)
			}
		})
	}
}

func TestTheWaysOutOfAFlowControlHelp(t *testing.T) {
	room := &metav1.Time{Time: time.Unix(1, 0)}
	for name, tc := range map[string]struct {
		reason string
		room   *metav1.Time
		want   []string
	}{
		"it closes by itself":         {v1alpha1.ReasonLimitHit, room, []string{"wait until then", "raise the limit", "stop counting earlier deletions"}},
		"deletions are never allowed": {v1alpha1.ReasonLimitHit, nil, []string{"raise the limit"}},
		"a rule is invalid":           {v1alpha1.ReasonInvalidRule, nil, []string{"correct the rule"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &v1alpha1.PodDeletionFlowControl{}
			f.Name, f.Status.RoomTime = "web", tc.room
			f.Status.Conditions = []apis.Condition{{Type: v1alpha1.FlowControlOpen, Status: "True", Reason: tc.reason}}
			var got []string
			e := diagnosis.ExplainFlowControl(f)
			for _, w := range e.WaysOut {
				got = append(got, w.Do)
			}
			// The wait may last 30 days, so the time has a date.
			if dated := slices.Contains(e.Why, "deletions are allowed again at 1970-01-01T00:00:01Z"); dated != slices.Contains(tc.want, "wait until then") {
				t.Errorf("got %q", e.Why)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestABudgetThatCoversNoPodSaysWhy(t *testing.T) {
	for cause, want := range map[string]diagnosis.Explanation{
		"": {Reason: "NoPods", Why: []string{"the workload of the budget has 0 replicas or no pods, or cannot be read"},
			WaysOut: []diagnosis.WayOut{{Do: "if the workload has replicas, correct spec.targetRef or spec.selector", Command: "kubectl edit pub web -n shop"}}},
		"there is no Deployment webb": {Reason: "CoversNothing", Why: []string{"there is no Deployment webb"},
			WaysOut: []diagnosis.WayOut{{Do: "correct spec.targetRef or spec.selector", Command: "kubectl edit pub web -n shop"}}},
	} {
		b := &v1alpha1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		b.Status.Conditions = []apis.Condition{{Type: v1alpha1.BudgetSynced, Status: "True", Message: cause}, {Type: v1alpha1.BudgetGuarding, Status: "True"}}
		want.Subject, want.State = "podunavailablebudget/web", diagnosis.StateAllowing
		if diff := cmp.Diff(want, diagnosis.ExplainBudget(b)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestTheWaysOutOfABudgetHelp(t *testing.T) {
	const counts = " of 3 pods are available, and 3 must be available: 0 more may become unavailable"
	charged := map[types.UID]string{"uid": "1/1"}
	for name, tc := range map[string]struct {
		available int32
		charges   map[types.UID]string
		why       []string
		want      []string
	}{
		"a pod is not available": {2, nil, []string{"2" + counts}, []string{"wait until more pods are Ready", "change the limit"}},
		"all pods are available": {3, nil, []string{"3" + counts}, []string{"change the limit"}},
		"all pods are available after an allowed request": {3, charged, []string{"3" + counts, "allowed requests in progress: 1"},
			[]string{"wait until the requests in progress have taken effect", "change the limit"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &v1alpha1.PodUnavailableBudget{}
			b.Status.TotalReplicas, b.Status.DesiredAvailable, b.Status.CurrentAvailable, b.Status.DeletedPods = 3, 3, tc.available, tc.charges
			b.Status.Conditions = []apis.Condition{{Type: v1alpha1.BudgetSynced, Status: "True"}, {Type: v1alpha1.BudgetGuarding, Status: "True"}}
			e := diagnosis.ExplainBudget(b)
			var got []string
			for _, w := range e.WaysOut {
				got = append(got, w.Do)
			}
			if !slices.Equal(e.Why, tc.why) || !slices.Equal(got, tc.want) {
				t.Errorf("got %q, %q, want %q, %q", e.Why, got, tc.why, tc.want)
			}
		})
	}
}
