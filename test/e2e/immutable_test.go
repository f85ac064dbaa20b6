//go:build e2e

package e2e

import (
	"strings"
	"testing"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/gen"
)

// whatIsImmutable is what a release, a batch and a release check are about; a
// policy of the API server says so, for anybody.
func whatIsImmutable(t *testing.T, e *environment) {
	n := e.guarded(t)
	n.create(t, gen.Deployment("web", 1, gen.Simulated))
	release := n.awaitPhase(t, rollout, "web", v1alpha1.WorkloadSuccess)
	batch := v1alpha1.ChangePodName(release.Name, 1)
	check, err := n.change.ReleaseChecks(n.name).Create(t.Context(), &v1alpha1.ReleaseCheck{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       v1alpha1.ReleaseCheckSpec{Kind: "Deployment", Name: "another", Version: "v"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	changeWorkload := func(patch string) error {
		_, err := n.change.ChangeWorkloads(n.name).Patch(t.Context(), release.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	changePod := func(patch string) error {
		_, err := n.change.ChangePods(n.name).Patch(t.Context(), batch, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	releaseCheck := func(patch string) error {
		_, err := n.change.ReleaseChecks(n.name).Patch(t.Context(), check.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	for name, tc := range map[string]struct {
		patch func(string) error
		body  string
		// want is in the answer; empty where the patch is admitted.
		want string
	}{
		"the version of a release":           {changeWorkload, `{"spec":{"reversion":"another"}}`, "reversion and attempt are immutable"},
		"the attempt of a release":           {changeWorkload, `{"spec":{"attempt":7}}`, "reversion and attempt are immutable"},
		"the workload of a release":          {changeWorkload, `{"spec":{"workloadRef":{"name":"another"}}}`, "workloadRef, reversion"},
		"another field of a release":         {changeWorkload, `{"spec":{"appName":"another"}}`, ""},
		"the pods of a batch":                {changePod, `{"spec":{"podInfos":[{"app":"web","pod":"p","namespace":"n","hostName":"h","workSpace":"w","ip":"i"}]}}`, "the spec of a ChangePod is immutable"},
		"a label of a batch":                 {changePod, `{"metadata":{"labels":{"a":"b"}}}`, ""},
		"the version that was asked about":   {releaseCheck, `{"spec":{"version":"another"}}`, "the spec of a ReleaseCheck is immutable"},
		"a person's word of a release check": {releaseCheck, `{"status":{"outcome":"Pass"}}`, ""},
	} {
		err := tc.patch(tc.body)
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s may not be changed: %v", name, err)
		case tc.want != "" && (!apierrs.IsInvalid(err) || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: the answer is %v, want one with %q", name, err, tc.want)
		}
	}
}
