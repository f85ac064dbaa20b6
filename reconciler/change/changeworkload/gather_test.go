package changeworkload

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

func TestAPodIsFinishedIfItIsOrWasReady(t *testing.T) {
	since := metav1.NewTime(time.Unix(1700000000, 0))
	labeled := map[string]string{v1alpha1.FinishedLabel: v1alpha1.FinishedValue}
	inPlace := workload.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "apps.kruise.io", Kind: "CloneSet"}, Revisions: workload.ControllerRevisions}
	tests := map[string]struct {
		ready  corev1.ConditionStatus
		since  metav1.Time
		labels map[string]string
		// template is the labels of the workload's template.
		template map[string]string
		kind     workload.Kind
		want     bool
	}{
		"not Ready":                       {ready: corev1.ConditionFalse, since: since},
		"Ready and not labeled yet":       {ready: corev1.ConditionTrue, since: since, want: true},
		"Ready without a transition time": {ready: corev1.ConditionTrue, want: true},
		"Ready and labeled":               {ready: corev1.ConditionTrue, since: since, labels: labeled, want: true},
		"not Ready, but labeled":          {ready: corev1.ConditionFalse, since: since, labels: labeled, want: true},
		"without the condition":           {},
		"updated in place, and not Ready": {ready: corev1.ConditionFalse, since: since, labels: labeled, kind: inPlace},
		"updated in place, and Ready":     {ready: corev1.ConditionTrue, since: since, labels: labeled, kind: inPlace, want: true},
		"labeled by its template":         {labels: labeled, template: labeled},
		"labeled by its template, Ready":  {ready: corev1.ConditionTrue, since: since, labels: labeled, template: labeled, want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: tc.labels, CreationTimestamp: since}}
			if tc.ready != "" {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: tc.ready, LastTransitionTime: tc.since}}
			}
			w := &workload.Workload{Kind: tc.kind, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: tc.template}}}
			got := podOf(p, &v1alpha1.ChangeWorkload{}, w)
			if got.Finished != tc.want {
				t.Errorf("finished is %t, want %t", got.Finished, tc.want)
			}
			if want := tc.ready == corev1.ConditionTrue; want && !got.ReadySince.Equal(tc.since.Time) || !want && !got.ReadySince.IsZero() {
				t.Errorf("Ready since %s", got.ReadySince)
			}
			if !got.Created.Equal(since.Time) {
				t.Errorf("created at %s", got.Created)
			}
		})
	}
}

func TestThePodSummaryHasTheHostNameOfThePod(t *testing.T) {
	for want, spec := range map[string]corev1.PodSpec{
		"p": {},
		"h": {Hostname: "h"},
		"o": {Hostname: "h", HostnameOverride: new("o")},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: spec}
		if got := podOf(p, &v1alpha1.ChangeWorkload{}, &workload.Workload{}).HostName; got != want {
			t.Errorf("host name %q, want %q", got, want)
		}
	}
}

func TestTheStateOfAHoldFollowsFromTheFieldAndTheRollout(t *testing.T) {
	const (
		deployed    = `"status":{"observedGeneration":2,"replicas":3,"updatedReplicas":1}`
		scheduled   = `"status":{"observedGeneration":2,"desiredNumberScheduled":3,"currentNumberScheduled":3,"updatedNumberScheduled":1,"numberAvailable":3}`
		unavailable = `"status":{"observedGeneration":2,"replicas":3,"updatedReplicas":3,"availableReplicas":2}`
		unobserved  = `"status":{"observedGeneration":1,"replicas":3,"updatedReplicas":3,"availableReplicas":2}`
		newNode     = `"status":{"observedGeneration":2,"desiredNumberScheduled":4,"currentNumberScheduled":3,"updatedNumberScheduled":3,"numberAvailable":3}`
		whole       = `"status":{"observedGeneration":2,"replicas":3,"updatedReplicas":3,"availableReplicas":3}`
	)
	d, s, ds := workload.Deployment, workload.StatefulSet, workload.DaemonSet
	for name, tc := range map[string]struct {
		kind         workload.Kind
		former       string // "-" if there is no hold
		spec, status string
		notReady     workload.ExcludedNodes
		want         HoldState
	}{
		"a Deployment without a hold":                          {kind: d, former: "-", spec: `{"replicas":3}`, status: deployed},
		"a Deployment that is held":                            {kind: d, former: `null`, spec: `{"replicas":3,"paused":true}`, status: deployed},
		"its rollout was resumed":                              {kind: d, former: `null`, spec: `{"replicas":3}`, status: deployed, want: HoldResumed},
		"it was resumed, and the field was false before":       {kind: d, former: `false`, spec: `{"replicas":3,"paused":false}`, status: deployed, want: HoldResumed},
		"it was paused before the hold":                        {kind: d, former: `true`, spec: `{"replicas":3,"paused":true}`, status: deployed},
		"this pause was ended":                                 {kind: d, former: `true`, spec: `{"replicas":3}`, status: deployed, want: HoldPauseEnded},
		"its pods were replaced before the hold":               {kind: d, former: `true`, spec: `{"replicas":3}`, status: unavailable},
		"they were replaced, and it is scaled down":            {kind: d, former: `true`, spec: `{"replicas":2}`, status: unobserved},
		"they were replaced, and it is scaled up":              {kind: d, former: `true`, spec: `{"replicas":5}`, status: unavailable},
		"its pods are available":                               {kind: d, former: `true`, spec: `{"replicas":3}`, status: whole},
		"a StatefulSet that is held":                           {kind: s, former: `2`, spec: `{"replicas":3,"updateStrategy":{"rollingUpdate":{"partition":2147483647}}}`, status: deployed},
		"its partition was restored":                           {kind: s, former: `2`, spec: `{"replicas":3,"updateStrategy":{"rollingUpdate":{"partition":2}}}`, status: deployed, want: HoldResumed},
		"its partition was raised before the hold":             {kind: s, former: `2147483647`, spec: `{"replicas":3,"updateStrategy":{"rollingUpdate":{"partition":2147483647}}}`, status: deployed},
		"this partition was lowered":                           {kind: s, former: `2147483647`, spec: `{"replicas":3,"updateStrategy":{"rollingUpdate":{"partition":2}}}`, status: deployed, want: HoldPauseEnded},
		"a StatefulSet with OnDelete":                          {kind: s, former: `2147483647`, spec: `{"replicas":3,"updateStrategy":{"type":"OnDelete"}}`, status: deployed},
		"its strategy was changed":                             {kind: s, former: `2147483647`, spec: `{"replicas":3,"updateStrategy":{"type":"RollingUpdate"}}`, status: deployed, want: HoldPauseEnded},
		"a DaemonSet that is held":                             {kind: ds, former: `"RollingUpdate"`, spec: `{"updateStrategy":{"type":"OnDelete"}}`, status: scheduled},
		"its strategy was restored":                            {kind: ds, former: `"RollingUpdate"`, spec: `{"updateStrategy":{"type":"RollingUpdate"}}`, status: scheduled, want: HoldResumed},
		"a DaemonSet with OnDelete":                            {kind: ds, former: `"OnDelete"`, spec: `{"updateStrategy":{"type":"OnDelete"}}`, status: scheduled},
		"it has RollingUpdate since":                           {kind: ds, former: `"OnDelete"`, spec: `{"updateStrategy":{"type":"RollingUpdate"}}`, status: scheduled, want: HoldPauseEnded},
		"its pods were replaced, and a node is new":            {kind: ds, former: `"OnDelete"`, spec: `{"updateStrategy":{"type":"RollingUpdate"}}`, status: newNode},
		"the pods that remain are on nodes that are not Ready": {kind: ds, former: `"OnDelete"`, spec: `{"updateStrategy":{"type":"RollingUpdate"}}`, status: scheduled, notReady: workload.ExcludedNodes{Nodes: 2}},
		"a Knative Service, which has no such field":           {kind: workload.KnativeService, former: `null`, spec: `{"replicas":3}`, status: `"status":{}`},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := `{}`
			if tc.former != "-" {
				hold, err := json.Marshal(`{"attempt":2,"former":` + tc.former + `,"unjudged":true}`)
				if err != nil {
					t.Fatal(err)
				}
				annotations = fmt.Sprintf(`{%q:%s}`, v1alpha1.HoldAnnotation, hold)
			}
			w := readWorkload(t, tc.kind, `{"metadata":{"generation":2,"annotations":`+annotations+`},"spec":`+tc.spec+`,`+tc.status+`}`)
			if got := workloadOf(w, tc.notReady).HoldState; got != tc.want {
				t.Errorf("state %d, want %d", got, tc.want)
			}
		})
	}
}

func TestUpdatesOfReadinessRevisionPhaseImagesAndDeletionOfAPodMatter(t *testing.T) {
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(1700000000, 0)},
		}}}
		change(p)
		return p
	}
	tests := map[string]struct {
		after *corev1.Pod
		want  bool
	}{
		"a container status":                        {after: pod(func(p *corev1.Pod) { p.Status.ContainerStatuses = make([]corev1.ContainerStatus, 1) })},
		"the label operate-finished":                {after: pod(func(p *corev1.Pod) { p.Labels = map[string]string{v1alpha1.FinishedLabel: v1alpha1.FinishedValue} })},
		"condition Ready becomes False":             {after: pod(func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }), want: true},
		"condition Ready has a new transition time": {after: pod(func(p *corev1.Pod) { p.Status.Conditions[0].LastTransitionTime = metav1.Unix(1700000009, 0) }), want: true},
		"the revision":                              {after: pod(func(p *corev1.Pod) { p.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: "2"} }), want: true},
		"the image of a container":                  {after: pod(func(p *corev1.Pod) { p.Spec.Containers = container("c", "i") }), want: true},
		"the image of an init container":            {after: pod(func(p *corev1.Pod) { p.Spec.InitContainers = container("c", "i") }), want: true},
		"the phase":                                 {after: pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), want: true},
		"the deletion timestamp":                    {after: pod(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }), want: true},
		"a field that no reconciler reads":          {after: pod(func(p *corev1.Pod) { p.Status.Message = "m" })},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := podChangeMatters(pod(func(*corev1.Pod) {}), tc.after); got != tc.want {
				t.Errorf("matters: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestABatchThatMayHaveFailedIsUrgent(t *testing.T) {
	said := func(stage v1alpha1.Stage, word string) v1alpha1.ChangePodStatus {
		return v1alpha1.ChangePodStatus{Verdicts: []v1alpha1.StageVerdict{{Stage: stage, Verdict: word}}}
	}
	named := func(source, word string) v1alpha1.ChangePodStatus {
		return v1alpha1.ChangePodStatus{PodResults: []v1alpha1.PodSummary{{Pod: "p", Source: source, Verdict: word}}}
	}
	tests := map[string]struct {
		status v1alpha1.ChangePodStatus
		want   bool
	}{
		"it has no verdict":         {},
		"it passed":                 {status: said(v1alpha1.StagePost, "pass")},
		"it is unjudged":            {status: said(v1alpha1.StagePost, "none")},
		"the PRE verdict is fail":   {status: said(v1alpha1.StagePre, "fail"), want: true},
		"the POST verdict is fail":  {status: said(v1alpha1.StagePost, "unpass"), want: true},
		"a person passes its pod":   {status: named("", "pass"), want: true},
		"the server passes its pod": {status: named(v1alpha1.SourceServer, "pass")},
		"the server fails its pod":  {status: named(v1alpha1.SourceServer, "fail"), want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := urgent(&v1alpha1.ChangePod{Status: tc.status}); got != tc.want {
				t.Errorf("urgent: %t, want %t", got, tc.want)
			}
		})
	}
}
