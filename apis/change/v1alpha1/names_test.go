package v1alpha1

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestNamesOfAnyLengthAreValid(t *testing.T) {
	version := strings.Repeat("a", 32)
	for _, workload := range []string{"a", strings.Repeat("w", 63), strings.Repeat("w", 213) + "." + strings.Repeat("v", 39)} {
		name := ChangePodName(ChangeWorkloadName(workload, version), 1_000_000)
		if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 {
			t.Errorf("%s: %v", name, errs)
		}
		if got := ChangePodIndex(name); got != 1_000_000 {
			t.Errorf("ChangePodIndex(%q) = %d, want 1000000", name, got)
		}
		if errs := validation.IsValidLabelValue(LabelValue(workload)); len(errs) > 0 {
			t.Errorf("%s: %v", workload, errs)
		}
		if id := OrderID("cluster", "ns", WorkloadRef{Kind: "Deployment", Name: workload, UID: "0123456789"}, version, 1); len(id) > 128 {
			t.Errorf("order id %s has %d bytes", id, len(id))
		}
	}
}

func TestLongNamesWithTheSamePrefixDiffer(t *testing.T) {
	long := strings.Repeat("w", 250)
	if ChangeWorkloadName(long+"a", "v") == ChangeWorkloadName(long+"b", "v") {
		t.Error("two workloads have the same ChangeWorkload name")
	}
}

func TestARecreatedDeploymentHasANewOrder(t *testing.T) {
	id := func(uid types.UID) string {
		return OrderID("c", "ns", WorkloadRef{Kind: "Deployment", Name: "a", UID: uid}, "v", 1)
	}
	if id("00000001-0000") == id("00000002-0000") {
		t.Error("the order ids are equal")
	}
}
