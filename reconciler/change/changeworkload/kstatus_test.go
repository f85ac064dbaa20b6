package changeworkload

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"
	"sigs.k8s.io/yaml"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func TestKstatusConditionsFollowFromSucceededAndHeld(t *testing.T) {
	condition := func(status corev1.ConditionStatus, reason string) *apis.Condition {
		return &apis.Condition{Status: status, Reason: reason, Message: "because"}
	}
	running := condition(corev1.ConditionUnknown, v1alpha1.ReasonJudging)
	notHeld := condition(corev1.ConditionFalse, v1alpha1.ReasonNotSuspended)
	for name, tc := range map[string]struct {
		succeeded, held *apis.Condition
		want            kstatusConditions
	}{
		"a running release is reconciling":    {running, notHeld, kstatusConditions{corev1.ConditionUnknown, v1alpha1.ReleaseReconciling, v1alpha1.ReasonProgressing, ""}},
		"a new release is reconciling":        {nil, nil, kstatusConditions{corev1.ConditionUnknown, v1alpha1.ReleaseReconciling, v1alpha1.ReasonProgressing, ""}},
		"a release that succeeded is ready":   {condition(corev1.ConditionTrue, v1alpha1.ReasonAllPodsPassed), notHeld, kstatusConditions{corev1.ConditionTrue, "", v1alpha1.ReasonAllPodsPassed, "because"}},
		"an unjudged release that is held":    {running, condition(corev1.ConditionTrue, v1alpha1.ReasonHeldUnjudged), kstatusConditions{corev1.ConditionFalse, v1alpha1.ReleaseStalled, v1alpha1.ReasonHeldUnjudged, "because"}},
		"a suspended release is stalled":      {condition(corev1.ConditionFalse, v1alpha1.ReasonCheckFailed), condition(corev1.ConditionTrue, v1alpha1.ReasonSuspended), kstatusConditions{corev1.ConditionFalse, v1alpha1.ReleaseStalled, v1alpha1.ReasonCheckFailed, "because"}},
		"a failed release in shadow mode too": {condition(corev1.ConditionFalse, v1alpha1.ReasonCheckFailed), condition(corev1.ConditionFalse, v1alpha1.ReasonShadow), kstatusConditions{corev1.ConditionFalse, v1alpha1.ReleaseStalled, v1alpha1.ReasonCheckFailed, "because"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := kstatusConditionsOf(tc.succeeded, tc.held); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestAReleaseThatContinuesAfterAHoldIsNoLongerStalled(t *testing.T) {
	in := release(3, finished(1, 1), judged(1, "fail"))
	in.ChangeWorkload = written(in)
	stalled := func() bool {
		return slices.ContainsFunc(in.ChangeWorkload.Status.Conditions, func(c apis.Condition) bool { return c.Type == v1alpha1.ReleaseStalled })
	}
	if !stalled() {
		t.Fatal("the failed release is not stalled")
	}
	overruled := release(3, finished(1, 1), judged(1, "fail"), person("pass"))
	overruled.ChangeWorkload = in.ChangeWorkload
	in.ChangeWorkload = written(overruled)
	if stalled() || !in.ChangeWorkload.Status.GetCondition(v1alpha1.ReleaseReconciling).IsTrue() {
		t.Errorf("conditions are %+v", in.ChangeWorkload.Status.Conditions)
	}
}

var update = flag.Bool("update", false, "write the golden files")

// TestToolsOfGitOpsAreTestedWithTheDerivedConditions compares the golden files with the derived
// conditions. test/gitops lets kstatus and Argo CD read these files.
func TestToolsOfGitOpsAreTestedWithTheDerivedConditions(t *testing.T) {
	shadow := release(3, finished(1, 1), judged(1, "fail"))
	shadow.Settings.Shadow = true
	hold := release(3, finished(1, 1), judged(1, "done"))
	hold.Settings.NoVerdict = v1alpha1.NoVerdictHold
	for name, in := range map[string]Input{
		"new":           release(3),
		"running":       release(3, finished(1, 1), judged(1, "pass")),
		"succeeded":     release(1, finished(1, 1), judged(1, "pass"), complete1),
		"suspended":     release(3, finished(1, 1), judged(1, "fail")),
		"held-unjudged": hold,
		"failed-shadow": shadow,
		"timed-out":     release(3, after(24*time.Hour)),
	} {
		t.Run(name, func(t *testing.T) {
			in.ChangeWorkload.Generation = 1
			c := written(in)
			c.APIVersion, c.Kind = v1alpha1.SchemeGroupVersion.String(), "ChangeWorkload"
			for i := range c.Status.Conditions {
				c.Status.Conditions[i].LastTransitionTime = apis.VolatileTime{Inner: metav1.NewTime(t0)}
			}
			got, err := yaml.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", "kstatus", name+".yaml")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s differs; `go test -update` writes it:\n%s", file, diff)
			}
		})
	}
}
