package changeworkload

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
)

// batchOf returns the batch n of ChangeWorkload web, which has the UID; no owner if it
// is empty.
func batchOf(owner types.UID, n int) *v1alpha1.ChangePod {
	c := &v1alpha1.ChangePod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: v1alpha1.ChangePodName("web", n), UID: types.UID(fmt.Sprintf("%s-%d", owner, n)),
	}}
	c.Spec.ChangeWorkloadID = "web"
	if owner != "" {
		yes := true
		c.OwnerReferences = []metav1.OwnerReference{{Kind: "ChangeWorkload", Name: "web", UID: owner, Controller: &yes}}
	}
	return c
}

func TestTheNameOfABatchThatExists(t *testing.T) {
	of := func(kind string) *v1alpha1.ChangePod {
		c := batchOf("other", 1)
		c.OwnerReferences[0].Kind = kind
		return c
	}
	terminating := of("ChangeWorkload")
	terminating.DeletionTimestamp, terminating.Finalizers = &metav1.Time{}, []string{"f"}
	for name, tc := range map[string]struct {
		there []runtime.Object
		// live is the UID of the ChangeWorkload that the API server has.
		live  types.UID
		want  string // the name of the batch
		stale bool
	}{
		"none":                               {live: "u", want: "web--x--1"},
		"orphans keep their names":           {there: []runtime.Object{batchOf("", 1), batchOf("", 2)}, live: "u", want: "web--x--3"},
		"an object of a user keeps its name": {there: []runtime.Object{of("Job")}, live: "u", want: "web--x--2"},
		"one that is terminating":            {there: []runtime.Object{terminating}, live: "u", want: "web--x--2"},
		"one of a deleted ChangeWorkload":    {there: []runtime.Object{batchOf("former", 1)}, live: "u", want: "web--x--1"},
		"one of this ChangeWorkload":         {there: []runtime.Object{batchOf("u", 1)}, live: "u", stale: true},
		"one of a newer ChangeWorkload":      {there: []runtime.Object{batchOf("newer", 1)}, live: "newer", stale: true},
		"this ChangeWorkload was deleted":    {there: []runtime.Object{batchOf("former", 1)}, stale: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{client: fake.NewSimpleClientset(tc.there...)}
			this := &v1alpha1.ChangeWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u"}}
			if tc.live != "" {
				live := this.DeepCopy()
				live.UID = tc.live
				if _, err := r.client.AppV1alpha1().ChangeWorkloads("default").Create(t.Context(), live, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			err := r.createChangePod(t.Context(), batchOf("u", 1), func() error { return r.confirmExists(t.Context(), this) })
			if isStale(err) != tc.stale || err != nil && !tc.stale {
				t.Fatalf("got %v, want an error of a stale cache: %t", err, tc.stale)
			}
			if tc.stale {
				return
			}
			made, err := r.client.AppV1alpha1().ChangePods("default").Get(t.Context(), tc.want, metav1.GetOptions{})
			if err != nil || !v1alpha1.OwnedBy(made, "u") {
				t.Errorf("%s is %v, %v", tc.want, made, err)
			}
		})
	}
}
