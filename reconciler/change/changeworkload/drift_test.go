package changeworkload

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	_ "knative.dev/pkg/client/injection/kube/informers/core/v1/node/fake"
	podinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/pod"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	changeclient "github.com/breakwater-dev/breakwater/client/injection/client/fake"
	_ "github.com/breakwater-dev/breakwater/client/injection/informers/judge/v1alpha1/metriccheck/fake"
)

func container(name, image string) []corev1.Container {
	return []corev1.Container{{Name: name, Image: image}}
}

// changed is a cached pod of the release: of its containers the cache has those whose image was
// changed.
func changed(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: types.UID(name),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "r", Controller: new(true)}},
	}}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func app(image string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers = container("app", image) }
}

func TestImagesThatWereChangedAndDifferFromTheTemplateDrift(t *testing.T) {
	replicaSet := func(replicas *int32) *appsv1.ReplicaSet {
		rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}, Spec: appsv1.ReplicaSetSpec{Replicas: replicas}}
		rs.Spec.Template.Spec.Containers = container("app", "evil")
		return rs
	}
	drifted := func(object string) []DriftedImage {
		return []DriftedImage{{Object: object, Container: "app", Image: "evil", Template: "busybox"}}
	}
	for name, tc := range map[string]struct {
		sets []*appsv1.ReplicaSet
		pods []*corev1.Pod
		want []DriftedImage
	}{
		"no image was changed": {pods: []*corev1.Pod{changed("p")}},
		"the image of a pod":   {pods: []*corev1.Pod{changed("o"), changed("p", app("evil"))}, want: drifted("pod p")},
		"of an init container": {pods: []*corev1.Pod{changed("p", func(p *corev1.Pod) { p.Spec.InitContainers = container("init", "evil") })},
			want: []DriftedImage{{Object: "pod p", Container: "init", Image: "evil", Template: "init:1"}}},
		"to the template's":                {pods: []*corev1.Pod{changed("p", app("busybox"))}},
		"of an injected sidecar":           {pods: []*corev1.Pod{changed("p", func(p *corev1.Pod) { p.Spec.Containers = container("proxy", "proxy:2") })}},
		"of one whose image a webhook set": {pods: []*corev1.Pod{changed("p", func(p *corev1.Pod) { p.Spec.Containers = container("auto", "auto:2") })}},
		"of a terminating pod":             {pods: []*corev1.Pod{changed("p", app("evil"), func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} })}},
		"of a completed pod":               {pods: []*corev1.Pod{changed("p", app("evil"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })}},
		"of a ReplicaSet":                  {sets: []*appsv1.ReplicaSet{replicaSet(new(int32(2)))}, want: drifted("ReplicaSet web-1")},
		"of one without replicas":          {sets: []*appsv1.ReplicaSet{replicaSet(new(int32(0)))}},
		"of both": {sets: []*appsv1.ReplicaSet{replicaSet(nil)}, pods: []*corev1.Pod{changed("p", app("evil"))},
			want: append(drifted("ReplicaSet web-1"), drifted("pod p")...)},
	} {
		t.Run(name, func(t *testing.T) {
			template := corev1.PodSpec{
				InitContainers: container("init", "init:1"),
				Containers:     append(container("app", "busybox"), container("auto", "")...),
			}
			if diff := cmp.Diff(tc.want, driftOf(&template, tc.sets, tc.pods)); diff != "" {
				t.Error("(-want +got):", diff)
			}
		})
	}
}

// drift adds drifted images of pods p1 to pn.
func drift(n int) func(*Input) {
	return func(in *Input) {
		for i := 1; i <= n; i++ {
			in.Drift = append(in.Drift, DriftedImage{Object: fmt.Sprintf("pod p%d", i), Container: "app", Image: "evil", Template: "busybox"})
		}
	}
}

func TestConditionDriftedIsThatOfTheCurrentRelease(t *testing.T) {
	baseline := func(in *Input) { in.ChangeWorkload.Spec.Attempt, in.Workload.Attempt = 0, 0 }
	succeeded := []func(*Input){finished(1, 1), judged(1, "pass"), complete1, was(v1alpha1.ReleaseSuccess)}
	with := func(more ...func(*Input)) Input { return release(1, append(succeeded[:4:4], more...)...) }
	for name, tc := range map[string]struct {
		before, in Input
		want       bool
		kind       change
	}{
		"it begins":                {with(), with(drift(1)), true, transition},
		"it ends":                  {with(drift(1)), with(), false, transition},
		"another pod is changed":   {with(drift(1)), with(drift(2)), true, progress},
		"nothing changes":          {with(drift(1)), with(drift(1)), true, same},
		"a newer release begins":   {with(drift(1)), with(drift(1), newer), false, transition},
		"the release is running":   {release(2, starting(1)), release(2, starting(1), drift(1)), true, transition},
		"it is that of a baseline": {release(1, baseline), release(1, baseline, drift(1)), true, transition},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.ChangeWorkload = written(tc.before)
			tc.in.DeliveredAnnouncements = deliveredOf(&v1alpha1.ChangeWorkload{})
			next, kind := nextStatus(tc.in, Decide(tc.in))
			c := next.Status.GetCondition(v1alpha1.ReleaseDrifted)
			if (c != nil) != tc.want || kind != tc.kind {
				t.Errorf("condition %+v, difference %d, want %t, %d", c, kind, tc.want, tc.kind)
			}
			if c != nil && (!c.IsTrue() || c.Reason != v1alpha1.ReasonImagesChanged) {
				t.Errorf("condition %+v", c)
			}
			if old, now := tc.before.ChangeWorkload, next; old.Status.Phase != "" && now.Status.Phase != old.Status.Phase {
				t.Errorf("drift changes the state from %q to %q", old.Status.Phase, now.Status.Phase)
			}
		})
	}
}

func TestTheMessageOfDriftNamesSomeImagesAndTheWaysOut(t *testing.T) {
	of := v1alpha1.WorkloadRef{Kind: "Deployment", Name: "web"}
	in := release(1, drift(5))
	const pods = "images were changed without a release: container app of pod p1 has image evil instead of busybox; " +
		"container app of pod p2 has image evil instead of busybox; container app of pod p3 has image evil instead of busybox; and 2 more. " +
		"Ways out: delete the pods; or release the images by a change of Deployment web"
	if diff := cmp.Diff(pods, driftMessage(in.Drift, of)); diff != "" {
		t.Error("(-want +got):", diff)
	}
	long := DriftedImage{Object: "ReplicaSet web-1", Container: "app", Image: strings.Repeat("a", 10000), Template: "busybox"}
	message := driftMessage([]DriftedImage{long, long, long, long}, of)
	if len(message) > 1500 || !strings.Contains(message, "change the ReplicaSet back") {
		t.Errorf("a message of %d bytes: %s", len(message), message)
	}
}

// The reconciler of a running system has only caches: all requests are writes of the status.
func TestDriftOfAPodIsReportedOnItsReleaseWithoutReads(t *testing.T) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web", UID: "d", Labels: map[string]string{v1alpha1.VersionKey: "v"},
		Annotations: map[string]string{v1alpha1.VersionKey: "v", v1alpha1.AttemptAnnotation: "0"},
	}}
	d.Spec.Template.Spec.Containers = container("app", "busybox")
	ctx, r, events := newTestReconciler(t, d)
	pods := podinformer.Get(ctx).Informer().GetIndexer()
	client := changeclient.Get(ctx)
	releases := client.AppV1alpha1().ChangeWorkloads("default")
	c := &v1alpha1.ChangeWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web--x--v", UID: "c"},
		Spec:       v1alpha1.ChangeWorkloadSpec{Reversion: "v", WorkloadRef: v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "d"}},
	}
	if _, err := releases.Create(ctx, c, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	for _, step := range []struct {
		what           string
		pod            *corev1.Pod
		drifted        bool
		events, writes int
	}{
		{"the pod is as it was created", changed("p"), false, 0, 1},
		{"its image was changed", changed("p", app("evil")), true, 1, 1},
		{"nothing changes", changed("p", app("evil")), true, 0, 0},
		{"the pod was replaced", changed("p"), false, 0, 1},
	} {
		add(t, pods, step.pod)
		client.ClearActions()
		if err := r.ReconcileKind(ctx, c.DeepCopy()); err != nil {
			t.Fatal(step.what, err)
		}
		if n := len(client.Actions()); n != step.writes {
			t.Errorf("%s: %d requests, want %d: %v", step.what, n, step.writes, client.Actions())
		}
		var err error
		if c, err = releases.Get(ctx, c.Name, metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := c.Status.GetCondition(v1alpha1.ReleaseDrifted).IsTrue(); got != step.drifted {
			t.Errorf("%s: drifted %t", step.what, got)
		}
		if n := len(events.Events); n != step.events {
			t.Errorf("%s: %d Events, want %d", step.what, n, step.events)
		}
		for len(events.Events) > 0 {
			if e := <-events.Events; !strings.HasPrefix(e, "Warning ImagesChanged ChangeWorkload web--x--v: images were changed without a release: container app of pod p has image evil") {
				t.Errorf("%s: Event %q", step.what, e)
			}
		}
	}
}
