//go:build controlplane

package change

import (
	"context"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/reconciler/webhookhealth"
)

const budgetCRD = "podunavailablebudgets.policy.kruise.io"

// missing returns the fields of budgets that the CRD of the cluster lacks.
func (f fixture) missing(t *testing.T) []string {
	t.Helper()
	u, err := f.Dynamic.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")).Get(t.Context(), budgetCRD, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &crd); err != nil {
		t.Fatal(err)
	}
	return webhookhealth.MissingFields(&crd, webhookhealth.CRD{
		Name: budgetCRD, Version: policyv1alpha1.SchemeGroupVersion.Version, Type: reflect.TypeFor[policyv1alpha1.PodUnavailableBudget](),
	})
}

func TestTheBudgetCRDOfOpenKruiseIsNotReplacedAndNotTakenForOurs(t *testing.T) {
	f := newFixture(t)
	kruise, err := plane.Build(t.Context(), "kruise")
	if err != nil {
		t.Fatal(err)
	}
	check := func(variables ...string) (string, error) {
		command := exec.CommandContext(t.Context(), "../../hack/check-crds.sh")
		command.Env = append(command.Environ(), variables...)
		out, err := command.CombinedOutput()
		return string(out), err
	}
	if out, err := check(); err != nil {
		t.Errorf("without a CRD: %v\n%s", err, out)
	}
	kubectl(t, "", "apply", "--server-side", "-f", filepath.Join(kruise.Module, "config", "crd", "bases", "policy.kruise.io_podunavailablebudgets.yaml"))
	t.Cleanup(func() {
		if out, err := exec.CommandContext(context.Background(), "kubectl", "delete", "crd", budgetCRD).CombinedOutput(); err != nil {
			t.Errorf("delete the CRD: %v\n%s", err, out)
		}
	})
	if out, err := check(); err == nil || !strings.Contains(out, "is of OpenKruise") || !strings.Contains(out, "REPLACE_CRDS=true") {
		t.Errorf("with that of OpenKruise: %v\n%s", err, out)
	}
	if out, err := check("REPLACE_CRDS=true"); err != nil {
		t.Errorf("when the user wants to replace it: %v\n%s", err, out)
	}
	if missing := f.missing(t); !slices.Contains(missing, "spec.shadow") {
		t.Errorf("the self-check would find %v", missing)
	}
	kubectl(t, "", "apply", "--server-side", "--force-conflicts", "-f", "../../config/protection/100-crd-podunavailablebudgets.yaml")
	if out, err := check(); err != nil {
		t.Errorf("with ours: %v\n%s", err, out)
	}
	if missing := f.missing(t); len(missing) > 0 {
		t.Errorf("ours lacks %v", missing)
	}
}
