package changeworkload

import (
	"encoding/json"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// rolling is a Deployment of attempt 2 in the middle of its roll-out.
func rolling() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", Generation: 3,
			Labels:      map[string]string{v1alpha1.VersionKey: "v"},
			Annotations: map[string]string{v1alpha1.AttemptAnnotation: "2"},
		},
		Spec:   appsv1.DeploymentSpec{Replicas: ptr.To[int32](3)},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 4, UpdatedReplicas: 2},
	}
}

func attempt(n int64) *v1alpha1.ChangeWorkload {
	return &v1alpha1.ChangeWorkload{Spec: v1alpha1.ChangeWorkloadSpec{Reversion: "v", Attempt: n}}
}

// applied returns the Deployment after a patch.
func applied(t *testing.T, d *appsv1.Deployment, patch []byte, err error) (*appsv1.Deployment, error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	raw, err = decoded.Apply(raw)
	if err != nil {
		return nil, err
	}
	var out appsv1.Deployment
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return &out, nil
}

func TestAHoldIsUndoneToTheLetter(t *testing.T) {
	for name, change := range map[string]func(*appsv1.Deployment){
		"of a roll-out":                      func(*appsv1.Deployment) {},
		"of a workload that rolled out":      func(d *appsv1.Deployment) { d.Status.Replicas, d.Status.UpdatedReplicas = 3, 3 },
		"of a workload that a person paused": func(d *appsv1.Deployment) { d.Spec.Paused = true },
	} {
		t.Run(name, func(t *testing.T) {
			before := rolling()
			change(before)
			patch, err := holdPatch(before, attempt(2), time.Unix(1700000000, 0))
			held, err := applied(t, before, patch, err)
			if err != nil {
				t.Fatal(err)
			}
			if got := held.Labels[v1alpha1.SuspendLabel]; got != "1700000000" {
				t.Errorf("suspend is %q", got)
			}
			if inProgress(before) && !held.Spec.Paused {
				t.Error("the roll-out goes on")
			}
			patch, err = resumePatch(held, attempt(2))
			resumed, err := applied(t, held, patch, err)
			if err != nil {
				t.Fatal(err)
			}
			delete(resumed.Labels, v1alpha1.DefenseStatusLabel) // stays by intent
			if diff := cmp.Diff(before, resumed); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAHoldNeverMeetsANewerTemplate(t *testing.T) {
	patch, err := holdPatch(rolling(), attempt(2), time.Unix(1700000000, 0))
	newer := rolling()
	newer.Annotations[v1alpha1.AttemptAnnotation] = "3"
	if _, err := applied(t, newer, patch, err); err == nil {
		t.Error("the patch was applied")
	}
}

func TestAnOlderHoldIsNotTakenForAPersonsPause(t *testing.T) {
	for name, tc := range map[string]struct {
		older  string
		paused bool
		want   bool
	}{
		"paused by the older hold":                {`{"attempt":1,"paused":false}`, true, false},
		"paused by a person before it":            {`{"attempt":1,"paused":true}`, true, true},
		"paused by a person, who let it go since": {`{"attempt":1,"paused":true}`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := rolling()
			d.Spec.Paused = tc.paused
			d.Annotations[v1alpha1.HoldAnnotation] = tc.older
			patch, err := holdPatch(d, attempt(2), time.Unix(1700000000, 0))
			held, err := applied(t, d, patch, err)
			if err != nil {
				t.Fatal(err)
			}
			want := &v1alpha1.Hold{Attempt: 2, Paused: tc.want}
			if diff := cmp.Diff(want, parse[v1alpha1.Hold](held.Annotations[v1alpha1.HoldAnnotation])); diff != "" {
				t.Error(diff)
			}
		})
	}
}
