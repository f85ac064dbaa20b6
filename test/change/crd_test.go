//go:build controlplane

package change

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/cache"

	guard "github.com/breakwater-dev/breakwater/admission/protection/budget"
	policyv1alpha1 "github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	listers "github.com/breakwater-dev/breakwater/client/listers/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/reconciler/selfcheck"
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
	return selfcheck.MissingFields(&crd, selfcheck.CRD{
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
	await(t, "a charge with the CRD of OpenKruise is not stored", func(ctx context.Context) error {
		if err := f.charge(ctx); err == nil || !strings.Contains(err.Error(), "did not store the charge") {
			return fmt.Errorf("the charge ended with %w", err)
		}
		return nil
	})
	kubectl(t, "", "apply", "--server-side", "--force-conflicts", "-f", "../../config/protection/100-crd-podunavailablebudgets.yaml")
	if out, err := check(); err != nil {
		t.Errorf("with ours: %v\n%s", err, out)
	}
	if missing := f.missing(t); len(missing) > 0 {
		t.Errorf("ours lacks %v", missing)
	}
	await(t, "a charge with ours is stored", f.charge)
}

// charge charges a new budget with the deletion of a pod. Soon after a change of the CRD, the API server
// may not serve it yet.
func (f fixture) charge(ctx context.Context) error {
	client := f.Breakwater.PolicyV1alpha1()
	budgets := client.PodUnavailableBudgets(f.namespace)
	one := intstr.FromInt32(1)
	b, err := budgets.Create(ctx, &policyv1alpha1.PodUnavailableBudget{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "charged-"},
		Spec:       policyv1alpha1.PodUnavailableBudgetSpec{Selector: &policyv1alpha1.PodSelector{MatchLabels: map[string]string{"app": "web"}}, MaxUnavailable: &one},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	b.Status.ObservedGeneration, b.Status.UnavailableAllowed, b.Status.DesiredAvailable, b.Status.TotalReplicas = b.Generation, 1, 1, 2
	if b, err = budgets.UpdateStatus(ctx, b, metav1.UpdateOptions{}); err != nil {
		return err
	}
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if err := index.Add(b); err != nil {
		return err
	}
	commit := guard.NewCommitter(listers.NewPodUnavailableBudgetLister(index), client, guard.NewChargeReferences(), nil)
	_, err = commit.Do(ctx, types.NamespacedName{Namespace: b.Namespace, Name: b.Name}, budget.Request{
		Operation: policyv1alpha1.OperationDelete, Generation: b.Generation, Pods: []budget.Pod{{Name: "web-1", UID: "uid-1", ResourceVersion: "1", BecomesUnavailable: true}},
	})
	return err
}
