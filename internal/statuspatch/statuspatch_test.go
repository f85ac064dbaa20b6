package statuspatch

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func changePod() *v1alpha1.ChangePod {
	return &v1alpha1.ChangePod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns", UID: "u", ResourceVersion: "7"},
		Status: v1alpha1.ChangePodStatus{
			Phase:      v1alpha1.PodPreWait,
			PodResults: []v1alpha1.PodSummary{{Pod: "p"}},
		},
	}
}

func TestFactsCarryOnlyTheDifferenceAndTheVersionItWasDecidedOn(t *testing.T) {
	after := changePod()
	after.Status.ChangePodID = "node-1"
	got, err := Facts(changePod(), after, ChangePodSubmit)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"metadata":{"resourceVersion":"7"},"status":{"changePodId":"node-1"}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestFactsThatChangeNothingAreNotWritten(t *testing.T) {
	got, err := Facts(changePod(), changePod(), ChangePodSubmit)
	if err != nil || got != nil {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestAFieldOfAnotherWriterIsAnError(t *testing.T) {
	after := changePod()
	after.Status.Phase = v1alpha1.PodExecuteDone
	if _, err := Facts(changePod(), after, ChangePodSubmit); err == nil || !strings.Contains(err.Error(), "status.status") {
		t.Errorf("got %v", err)
	}
}

func TestDerivedLeavesFactsOutAndIsRefusedForAnythingNewer(t *testing.T) {
	got, err := Derived(changePod(), ChangePodDerived)
	if err != nil {
		t.Fatal(err)
	}
	// The empty message takes back what a person wrote there.
	want := `{"apiVersion":"app.ops.cloud.alipay.com/v1alpha1","kind":"ChangePod",` +
		`"metadata":{"name":"a","namespace":"ns","resourceVersion":"7"},"status":{"message":"","status":"PreWait"}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}
