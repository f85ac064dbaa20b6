//go:build e2e

package e2e

import (
	"strings"
	"testing"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// immutableFields identify a release, a batch and a release check. A policy of
// the API server denies changes by any user.
func immutableFields(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.create(t, builder.Deployment("web", 1, builder.Simulated))
	release := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	batch := v1alpha1.ChangePodName(release.Name, 1)
	check, err := n.change.ReleaseChecks(n.name).Create(t.Context(), &v1alpha1.ReleaseCheck{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       v1alpha1.ReleaseCheckSpec{Kind: "Deployment", Name: "another", Version: "v"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{"changeworkloads": release.Name, "changepods": batch, "releasechecks": check.Name}
	for name, tc := range map[string]struct {
		resource, patch string
		// want is part of the error; empty when the patch is admitted.
		want string
	}{
		"the version of a release":       {"changeworkloads", `{"spec":{"reversion":"another"}}`, "reversion and attempt are immutable"},
		"the attempt of a release":       {"changeworkloads", `{"spec":{"attempt":7}}`, "reversion and attempt are immutable"},
		"the workload of a release":      {"changeworkloads", `{"spec":{"workloadRef":{"name":"another"}}}`, "workloadRef, reversion"},
		"another field of a release":     {"changeworkloads", `{"spec":{"appName":"another"}}`, ""},
		"the pods of a batch":            {"changepods", `{"spec":{"podInfos":[{"app":"web","pod":"p","namespace":"n","hostName":"h","workSpace":"w","ip":"i"}]}}`, "the spec of a ChangePod is immutable"},
		"a label of a batch":             {"changepods", `{"metadata":{"labels":{"a":"b"}}}`, ""},
		"the version of a release check": {"releasechecks", `{"spec":{"version":"another"}}`, "the spec of a ReleaseCheck is immutable"},
		"the outcome of a release check": {"releasechecks", `{"status":{"outcome":"Pass"}}`, ""},
	} {
		_, err := n.dynamic.Resource(v1alpha1.SchemeGroupVersion.WithResource(tc.resource)).Namespace(n.name).
			Patch(t.Context(), names[tc.resource], types.MergePatchType, []byte(tc.patch), metav1.PatchOptions{})
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("patch %s: %v", name, err)
		case tc.want != "" && (!apierrs.IsInvalid(err) || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("patch %s: error is %v, want %q", name, err, tc.want)
		}
	}
}
