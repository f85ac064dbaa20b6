package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clienttesting "k8s.io/client-go/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// judgedPods returns the pods that have a verdict of a person.
func judgedPods(t *testing.T, c *clients) []string {
	t.Helper()
	list, err := c.breakwater.AppV1alpha1().ChangePods("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods := map[string]bool{}
	for _, b := range list.Items {
		for _, r := range b.Status.PodResults {
			pods[r.Pod] = true
		}
	}
	return slices.Sorted(maps.Keys(pods))
}

func TestAVerdictIsForTheNamedObjectOfTheCurrentRelease(t *testing.T) {
	first, second := at(1, "busybox:1"), at(2, "busybox:2")
	older := v1alpha1.ChangeWorkloadName("sleep", builder.Version(first))
	current := v1alpha1.ChangeWorkloadName("sleep", builder.Version(second))
	judge := "is neither the current release nor a batch of it: `kubectl breakwater reject deployment/sleep -n default --context c -m REASON` is for the current release, " +
		builder.Version(second) + ", attempt 2"
	for name, tc := range map[string]struct {
		named string
		pods  []string
		order bool
		want  []string
		err   string
	}{
		"a workload":                  {named: "deployment/sleep", want: []string{"b1", "b2"}},
		"its current release":         {named: "changeworkload/" + current, want: []string{"b1", "b2"}},
		"a batch":                     {named: "changepod/" + v1alpha1.ChangePodName(current, 2), want: []string{"b2"}},
		"a pod of the batch":          {named: "changepod/" + v1alpha1.ChangePodName(current, 2), pods: []string{"b2"}, want: []string{"b2"}},
		"a pod as kubectl names it":   {named: "changepod/" + v1alpha1.ChangePodName(current, 2), pods: []string{"pod/b2"}, want: []string{"b2"}},
		"a pod of another batch":      {named: "changepod/" + v1alpha1.ChangePodName(current, 2), pods: []string{"b1"}, err: "the verdict was not written: pod b1 is in no batch that is judged: `kubectl breakwater tree deployment/sleep -n default --context c`"},
		"the order check of a batch":  {named: "changepod/" + v1alpha1.ChangePodName(current, 2), order: true, err: "name deployment/sleep, and not a batch"},
		"the order check":             {named: "changeworkload/" + current, order: true},
		"a former release":            {named: "changeworkload/" + older, err: judge},
		"a batch of a former release": {named: "changepod/" + v1alpha1.ChangePodName(older, 1), err: judge},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, optedIn, second, first, second)
			c.addBatch(t, older, 1, "a1")
			c.addBatch(t, current, 1, "b1")
			c.addBatch(t, current, 2, "b2")
			err := (&app{IOStreams: genericiooptions.IOStreams{Out: io.Discard}}).
				writeVerdict(t.Context(), c, tc.named, verdict{command: "reject", value: "fail", message: "x", pods: tc.pods, order: tc.order})
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error is %v, want %q", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, judgedPods(t, c)); diff != "" {
				t.Error(diff)
			}
			release, err := c.breakwater.AppV1alpha1().ChangeWorkloads("default").Get(t.Context(), current, metav1.GetOptions{})
			if err != nil || (release.Status.OrderResult != nil) != (tc.order && tc.err == "") {
				t.Errorf("order result is %v, %v", release.Status.OrderResult, err)
			}
		})
	}
}

// While a release runs, others write its batches all the time.
func TestAVerdictOfABatchIsWrittenAgainAfterAConflict(t *testing.T) {
	current := at(1, "busybox:1")
	c := cluster(t, optedIn, current, current)
	release := v1alpha1.ChangeWorkloadName("sleep", builder.Version(current))
	for n := 1; n <= 3; n++ {
		c.addBatch(t, release, n, fmt.Sprintf("b%d", n))
	}
	client, patches := c.breakwater.(*fake.Clientset), map[string]int{}
	client.PrependReactor("patch", "changepods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		name := a.(clienttesting.PatchAction).GetName()
		if patches[name]++; patches[name] > 3 {
			return false, nil, nil
		}
		b, err := client.Tracker().Get(v1alpha1.SchemeGroupVersion.WithResource("changepods"), "default", name)
		if err != nil {
			t.Error(err)
		}
		written := b.(*v1alpha1.ChangePod).DeepCopy()
		written.Status.PodResults = []v1alpha1.PodSummary{{Pod: "other", Verdict: "pass"}}
		if err := client.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("changepods"), written, "default"); err != nil {
			t.Error(err)
		}
		return true, nil, apierrors.NewConflict(v1alpha1.Resource("changepods"), name, errors.New("written by another"))
	})
	var out bytes.Buffer
	if err := (&app{IOStreams: genericiooptions.IOStreams{Out: &out}}).
		writeVerdict(t.Context(), c, "deployment/sleep", verdict{command: "reject", value: "fail", message: "x"}); err != nil {
		t.Fatal(err)
	}
	if want := "pod/b1: fail\npod/b2: fail\npod/b3: fail\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
	if diff := cmp.Diff([]string{"b1", "b2", "b3", "other"}, judgedPods(t, c)); diff != "" {
		t.Error(diff)
	}
}

// The workload was found in this namespace, so another one is no way out.
func TestAMissingRightToWriteAVerdictAdvisesNoOtherNamespace(t *testing.T) {
	c := cluster(t, optedIn, at(1, "busybox:1"), at(1, "busybox:1"))
	c.breakwater.(*fake.Clientset).PrependReactor("patch", "changeworkloads", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(v1alpha1.Resource("changeworkloads"), "web", errors.New("no right"))
	})
	err := (&app{}).writeVerdict(t.Context(), c, "deployment/sleep", verdict{command: "approve", value: "pass", message: "x", order: true})
	if want := "no right\nlet a cluster admin give you role breakwater-judge: "; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// addBatch adds a batch of one pod to a release.
func (c *clients) addBatch(t *testing.T, release string, n int, pod string) {
	t.Helper()
	owner, err := c.breakwater.AppV1alpha1().ChangeWorkloads("default").Get(t.Context(), release, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b := &v1alpha1.ChangePod{ObjectMeta: metav1.ObjectMeta{
		Name: v1alpha1.ChangePodName(release, n), Namespace: "default", Labels: owner.Labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1alpha1.SchemeGroupVersion.WithKind("ChangeWorkload"))},
	}}
	b.UID, b.Spec.PodInfos = types.UID(b.Name), []v1alpha1.PodSummary{{Pod: pod}}
	b.APIVersion, b.Kind = v1alpha1.SchemeGroupVersion.String(), "ChangePod"
	c.add(t, b)
}
