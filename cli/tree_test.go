package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// addRelease adds a release of a Deployment that may not exist.
func (c *clients) addRelease(t *testing.T, d *appsv1.Deployment, change func(*v1alpha1.ChangeWorkload)) {
	t.Helper()
	r := builder.ChangeWorkload(d, 1, v1alpha1.ReleaseSuccess)
	r.APIVersion, r.Kind = v1alpha1.SchemeGroupVersion.String(), "ChangeWorkload"
	r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, workload.Deployment.GroupVersionKind)}
	change(r)
	c.add(t, r)
}

// A finalizer can keep the release of a deleted workload.
func TestATreeOfANamespaceLeavesOutReleasesOfDeletedWorkloads(t *testing.T) {
	live := at(1, "busybox:1")
	deleted := at(1, "busybox:0", func(d *appsv1.Deployment) { d.Name, d.UID = "deleted", "deleted-uid" })
	former := at(1, "busybox:0", func(d *appsv1.Deployment) { d.UID = "former-uid" })
	for name, add := range map[string]func(*clients){
		"a release that is terminating": func(c *clients) {
			c.addRelease(t, deleted, func(r *v1alpha1.ChangeWorkload) {
				now := metav1.Now()
				r.DeletionTimestamp, r.Finalizers = &now, []string{"breakwater.dev/order"}
			})
		},
		"a release without its workload":                      func(c *clients) { c.addRelease(t, deleted, func(*v1alpha1.ChangeWorkload) {}) },
		"a release of an earlier workload with the same name": func(c *clients) { c.addRelease(t, former, func(*v1alpha1.ChangeWorkload) {}) },
		"a release of a kind that the cluster has not any more": func(c *clients) {
			c.addRelease(t, deleted, func(r *v1alpha1.ChangeWorkload) {
				r.Spec.WorkloadRef.APIVersion, r.Spec.WorkloadRef.Kind = "example.com/v1", "Gadget"
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, optedIn, live, live)
			add(c)
			var out bytes.Buffer
			a := &app{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &out}}
			if err := a.showTree(t.Context(), c, nil, &out); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); strings.Count(got, "default/") != 1 || !strings.Contains(got, "default/deployment/sleep") {
				t.Errorf("got\n%s\nwant only deployment/sleep", got)
			}
			if err := a.showTree(t.Context(), c, []string{"deployment/deleted"}, &out); err == nil {
				t.Error("no error for a named workload that does not exist")
			}
		})
	}
}

// A role may have no right to read an added kind.
func TestATreeOfANamespaceShowsAWorkloadThatCannotBeRead(t *testing.T) {
	live := at(1, "busybox:1")
	other := at(1, "busybox:0", func(d *appsv1.Deployment) { d.Name, d.UID = "other", "other-uid" })
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"a missing right": {apierrors.NewForbidden(appsv1.Resource("deployments"), "other", errors.New("no right")), "default/deployment/other\n└── read deployment/other: "},
		// A watch reads again.
		"an error that may pass": {apierrors.NewServiceUnavailable("restarting"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, optedIn, live, live)
			c.addRelease(t, other, func(*v1alpha1.ChangeWorkload) {})
			c.dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("get", "deployments", func(a clienttesting.Action) (bool, runtime.Object, error) {
				return a.(clienttesting.GetAction).GetName() == "other", nil, tc.err
			})
			var out bytes.Buffer
			err := (&app{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &out}}).showTree(t.Context(), c, nil, &out)
			if tc.want == "" {
				if err == nil {
					t.Errorf("no error, but\n%s", out.String())
				}
			} else if got := out.String(); err != nil || !strings.Contains(got, tc.want) || !strings.Contains(got, "default/deployment/sleep\n") {
				t.Errorf("got %v and\n%s\nwant deployment/sleep and %s", err, got, tc.want)
			}
			for _, action := range c.breakwater.(*fake.Clientset).Actions() {
				if !action.(clienttesting.ListAction).GetListRestrictions().Labels.Empty() {
					t.Errorf("listed %s of one workload", action.GetResource().Resource)
				}
			}
		})
	}
}
