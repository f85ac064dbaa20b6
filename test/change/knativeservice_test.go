//go:build controlplane

package change

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/knativetraffic"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// knativeService is a Service as a user writes it.
const knativeService = `
metadata: {name: web}
spec:
  template:
    metadata: {annotations: {test.breakwater.dev/release: v1}}
    spec:
      containerConcurrency: 0
      containers: [{name: user-container, image: "busybox:1"}]
  traffic: [{latestRevision: true, percent: 100}]
`

// serviceLabel names the Service of an object of Serving.
const serviceLabel = "serving.knative.dev/service"

// installServing installs the CRDs of Serving while Breakwater runs.
var installServing = sync.OnceValue(func() error { return plane.InstallServing(context.Background()) })

// createKnativeService creates the Service web, and its first Revision with some pods.
func (f fixture) createKnativeService(t *testing.T, pods int32) target {
	t.Helper()
	f.useServing(t)
	w := f.create(t, workload.KnativeService, object(t, knativeService))
	w.rollOut(t, pods)
	return w
}

func (f fixture) useServing(t *testing.T) {
	t.Helper()
	if err := installServing(); err != nil {
		t.Fatal(err)
	}
	f.awaitKind(t, workload.KnativeService)
}

// rollOut does what Serving does for a new generation of the Service: it creates a Revision and
// its Deployment, scales those of former Revisions to zero, and writes the status.
func (w target) rollOut(t *testing.T, pods int32) {
	t.Helper()
	w.startRollOut(t, pods)()
}

// failRollOut rolls out the attempt, of which a judge fails a pod before the rollout is complete.
// Without a server an unjudged release succeeds when its rollout is complete.
func (w target) failRollOut(t *testing.T, pods int32, attempt int64) {
	t.Helper()
	complete := w.startRollOut(t, pods)
	w.judge(t, w.awaitBatch(t, attempt), "unpass")
	w.awaitSuspended(t)
	complete()
}

// startRollOut is rollOut without the status, which complete writes.
func (w target) startRollOut(t *testing.T, pods int32) (complete func()) {
	t.Helper()
	revision, complete := w.createRevision(t, pods)
	w.awaitAvailable(t, revision+"-deployment", pods)
	return complete
}

// createRevision is startRollOut without waiting for pods.
func (w target) createRevision(t *testing.T, pods int32) (name string, complete func()) {
	t.Helper()
	ctx := t.Context()
	service, err := w.live(ctx)
	if err != nil {
		t.Fatal(err)
	}
	template, _, err := unstructured.NestedMap(service.Object, "spec", "template")
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]string{serviceLabel: w.name, "serving.knative.dev/serviceUID": string(service.GetUID())}
	configuration := w.write(t, "Configuration", w.name, of, nil, service, map[string]any{"template": template})
	name = fmt.Sprintf("%s-%05d", w.name, service.GetGeneration())
	annotations, _, err := unstructured.NestedStringMap(template, "metadata", "annotations")
	if err != nil {
		t.Fatal(err)
	}
	revision := w.write(t, "Revision", name, of, annotations, configuration, template["spec"])
	w.scaleDeployments(t, "", 0)
	w.createDeployment(t, revision, pods)
	return name, func() {
		t.Helper()
		service, err := w.live(ctx)
		if err != nil {
			t.Fatal(err)
		}
		status := fmt.Sprintf(`{"status":{"observedGeneration":%d,"latestCreatedRevisionName":%q,"latestReadyRevisionName":%[2]q,
			"conditions":[{"type":"Ready","status":"True"}]}}`, service.GetGeneration(), name)
		if _, err := w.Dynamic.Resource(w.kind.GroupVersionResource()).Namespace(w.namespace).
			Patch(ctx, w.name, types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
}

// observe does what Serving does for a change of the traffic after rollOut, which needs no Revision.
func (w target) observe(ctx context.Context) error {
	service, err := w.live(ctx)
	if err != nil {
		return err
	}
	observed, _, err := unstructured.NestedInt64(service.Object, "status", "observedGeneration")
	if err != nil || observed >= service.GetGeneration() {
		return err
	}
	_, err = w.Dynamic.Resource(w.kind.GroupVersionResource()).Namespace(w.namespace).Patch(ctx, w.name, types.MergePatchType,
		fmt.Appendf(nil, `{"status":{"observedGeneration":%d}}`, service.GetGeneration()), metav1.PatchOptions{}, "status")
	return err
}

// write creates or updates an object of Serving.
func (w target) write(t *testing.T, kind, name string, labels, annotations map[string]string, owner metav1.Object, spec any) *unstructured.Unstructured {
	t.Helper()
	gvk := schema.GroupVersionKind{Group: "serving.knative.dev", Version: "v1", Kind: kind}
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(map[string]any{"spec": spec})}
	u.SetGroupVersionKind(gvk)
	u.SetName(name)
	u.SetLabels(labels)
	u.SetAnnotations(annotations)
	ownerKind := workload.KnativeService.GroupVersionKind
	if kind == "Revision" {
		ownerKind.Kind = "Configuration"
	}
	u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, ownerKind)})
	client := w.Dynamic.Resource(gvk.GroupVersion().WithResource(strings.ToLower(kind) + "s")).Namespace(w.namespace)
	created, err := client.Apply(t.Context(), name, u, metav1.ApplyOptions{FieldManager: "serving", Force: true})
	if err != nil {
		t.Fatalf("write %s %s: %v", kind, name, err)
	}
	return created
}

// createDeployment creates the Deployment of a Revision.
func (w target) createDeployment(t *testing.T, revision *unstructured.Unstructured, pods int32) {
	t.Helper()
	d := builder.Deployment(revision.GetName()+"-deployment", pods, builder.Simulated)
	d.Labels = maps.Clone(revision.GetLabels())
	d.Annotations = revision.GetAnnotations()
	d.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(revision, revision.GroupVersionKind())}
	unique := map[string]string{"serving.knative.dev/revision": revision.GetName()}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: unique}
	d.Spec.Template.Labels = maps.Clone(unique)
	maps.Copy(d.Spec.Template.Labels, revision.GetLabels())
	d.Spec.Template.Annotations = revision.GetAnnotations()
	if _, err := w.Kube.AppsV1().Deployments(w.namespace).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// scaleDeployments scales one Deployment, or all if the name is empty.
func (w target) scaleDeployments(t *testing.T, name string, pods int32) {
	t.Helper()
	for _, d := range w.deployments(t) {
		if name == "" || d.Name == name {
			_, err := w.Kube.AppsV1().Deployments(w.namespace).Patch(t.Context(), d.Name, types.MergePatchType,
				fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, pods), metav1.PatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (w target) deployments(t *testing.T) []appsv1.Deployment {
	t.Helper()
	list, err := w.Kube.AppsV1().Deployments(w.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: serviceLabel + "=" + w.name})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// checkKnativeRelease waits until an attempt succeeded, and fails if its Deployments are judged
// beside the Service.
func (w target) checkKnativeRelease(t *testing.T, attempt int64) {
	t.Helper()
	await(t, fmt.Sprintf("attempt %d of the Service succeeds", attempt), func(ctx context.Context) error {
		if err := w.observe(ctx); err != nil {
			return err
		}
		c, err := w.release(ctx)
		if err == nil && (c.Status.Phase != v1alpha1.ReleaseSuccess || c.Spec.Attempt != attempt) {
			err = fmt.Errorf("attempt %d is %q: %+v", c.Spec.Attempt, c.Status.Phase, c.Status.Counts)
		}
		return err
	})
	w.awaitSaved(t, attempt)
	w.awaitResumed(t)
	all, err := w.Breakwater.AppV1alpha1().ChangeWorkloads(w.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	live, err := w.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range all.Items {
		if c := &all.Items[i]; !metav1.IsControlledBy(c, live) || c.Spec.WorkloadRef.Kind != "Service" {
			t.Errorf("%s is of %+v", c.Name, c.Spec.WorkloadRef)
		}
	}
	for _, d := range w.deployments(t) {
		if version := d.Labels[v1alpha1.VersionKey]; version != "" {
			t.Errorf("Deployment %s has version %s", d.Name, version)
		}
	}
}

func TestAKnativeServiceIsReleasedHeldRepairedAndRolledBack(t *testing.T) {
	t.Parallel()
	w := newFixture(t).createKnativeService(t, 2)
	w.checkKnativeRelease(t, 1)
	w.mustPlugin(t, 0, []string{"services.serving.knative.dev/web", "is Passed (AllPodsPassed)"}, "status", "services.serving.knative.dev/web", "--timeout", "2m")

	w.mustPatch(t, releaseOf("v2"))
	w.failRollOut(t, 2, 2)
	w.awaitPhase(t, v1alpha1.ReleaseSuspend, 2)
	good := w.revisionOf(t, 1)
	w.checkTraffic(t, good)
	if err := w.patch(t.Context(), releaseOf("v3")); err == nil || !strings.Contains(err.Error(), "service web is suspended") {
		t.Errorf("the next release: %v", err)
	}
	for what, patch := range map[string]string{
		"scaling": `{"spec":{"template":{"metadata":{"annotations":{"autoscaling.knative.dev/min-scale":"1"}}}}}`,
		"traffic": `{"spec":{"traffic":[{"latestRevision":true,"tag":"next"},{"revisionName":"` + good + `","percent":100}]}}`,
		"a label": `{"metadata":{"labels":{"a":"b"}}}`,
	} {
		if err := w.patch(t.Context(), patch); err != nil {
			t.Errorf("%s during the suspension: %v", what, err)
		}
	}
	// The change of scale creates another Revision of the failed template.
	w.rollOut(t, 1)
	await(t, "the further Revision is held", func(ctx context.Context) error {
		live, err := w.get(ctx)
		if err != nil {
			return err
		}
		if hold := v1alpha1.HoldOf(live.Annotations); hold == nil || hold.Traffic == nil || len(hold.Traffic.Failed) != 2 {
			return fmt.Errorf("held with %s", live.Annotations[v1alpha1.HoldAnnotation])
		}
		return nil
	})
	for what, entry := range map[string]string{"the latest Revision": `"latestRevision":true`, "the failed Revision": `"revisionName":"` + w.revisionOf(t, 2) + `"`} {
		err := w.patch(t.Context(), `{"spec":{"traffic":[{`+entry+`,"percent":100}]}}`)
		if err == nil || !strings.Contains(err.Error(), "service web is suspended: spec.traffic sends requests to a Revision that failed") {
			t.Errorf("traffic to %s: %v", what, err)
		}
	}
	// As it was moved: then the end of the suspension moves it back.
	w.mustPatch(t, `{"spec":{"traffic":[{"revisionName":"`+good+`","percent":100}]}}`)
	// The manifest of the repair sends all traffic to the latest Revision, which is the failed one until
	// the repair is Ready.
	w.mustPatch(t, andToLatest(repairOf("v3")))
	w.checkTraffic(t, good)
	w.rollOut(t, 2)
	w.checkKnativeRelease(t, 3)
	w.checkTraffic(t, "")

	w.mustPatch(t, releaseOf("v4"))
	w.failRollOut(t, 2, 4)
	w.checkTraffic(t, w.revisionOf(t, 3))
	w.mustPatch(t, releaseOf("v3"))
	w.checkTraffic(t, w.revisionOf(t, 3))
	w.rollOut(t, 2)
	w.checkKnativeRelease(t, 5)
	w.checkTraffic(t, "")

	w.mustPatch(t, releaseOf("v5"))
	w.failRollOut(t, 2, 6)
	w.requestRollback(t, 6)
	w.awaitWorkload(t, "is rolled back", func(live *workload.Workload) bool {
		return live.Annotations[v1alpha1.AttemptAnnotation] == "7" && live.Template.Annotations[builder.Marker] == "v3"
	})
	w.rollOut(t, 2)
	w.checkKnativeRelease(t, 7)
	w.checkTraffic(t, "")
}

// revisionOf returns the last Revision of an attempt.
func (w target) revisionOf(t *testing.T, attempt int64) string {
	t.Helper()
	name := ""
	for _, d := range w.deployments(t) {
		if release, known := v1alpha1.ReleaseOf(d.Annotations); known && release.Attempt == attempt {
			name = metav1.GetControllerOf(&d).Name
		}
	}
	if name == "" {
		t.Fatalf("attempt %d has no Revision", attempt)
	}
	return name
}

// checkTraffic fails unless all requests go to a Revision; to the latest if the name is empty.
func (w target) checkTraffic(t *testing.T, revision string) {
	t.Helper()
	if err := w.trafficAt(t.Context(), revision); err != nil {
		t.Error(err)
	}
}

func (w target) trafficAt(ctx context.Context, revision string) error {
	live, err := w.get(ctx)
	if err != nil {
		return err
	}
	of := knativetraffic.Revisions{Names: []string{revision}, Latest: revision == ""}
	if of.Share(live.Traffic) != 100 {
		return fmt.Errorf("traffic %v, want all at %q", live.Traffic, revision)
	}
	return nil
}

// The ChangeWorkload of the version before is deleted when the release succeeds.
func TestAFailAfterSuccessGivesTheTrafficBack(t *testing.T) {
	t.Parallel()
	w := newFixture(t).createKnativeService(t, 1)
	w.checkKnativeRelease(t, 1)
	good := w.revisionOf(t, 1)
	former, err := w.release(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.mustPatch(t, releaseOf("v2"))
	w.rollOut(t, 1)
	w.checkKnativeRelease(t, 2)
	// The controller waits with it until a Broker has accepted its announcements.
	if err := w.deleteRelease(t.Context(), former.Name); err != nil {
		t.Fatal(err)
	}
	w.judge(t, w.awaitBatch(t, 2), "unpass")
	w.awaitSuspended(t)
	w.checkTraffic(t, good)
}

func (w target) deleteRelease(ctx context.Context, name string) error {
	releases := w.Breakwater.AppV1alpha1().ChangeWorkloads(w.namespace)
	if err := releases.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	_, err := releases.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if apierrs.IsNotFound(err) {
		return nil
	}
	return err
}

func TestAFailedBaselineSuccessorGivesItsTrafficToTheBaseline(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.optIn(t, "disabled")
	w := f.createKnativeService(t, 1)
	f.optIn(t, v1alpha1.NamespaceEnabled)
	w.awaitSaved(t, 0)
	live, err := w.live(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	baseline, _, err := unstructured.NestedString(live.Object, "status", "latestReadyRevisionName")
	if err != nil {
		t.Fatal(err)
	}
	w.mustPatch(t, releaseOf("v2"))
	w.failRollOut(t, 1, 1)
	w.checkTraffic(t, baseline)
}

func TestAChangeOfScaleOrTrafficOfAKnativeServiceIsNoRelease(t *testing.T) {
	t.Parallel()
	w := newFixture(t).createKnativeService(t, 1)
	w.checkKnativeRelease(t, 1)
	w.mustPatch(t, `{"spec":{"template":{"metadata":{"name":"web-scaled","annotations":{"autoscaling.knative.dev/max-scale":"3"}}},
		"traffic":[{"latestRevision":true,"percent":100}]}}`)
	w.rollOut(t, 2)
	w.checkKnativeRelease(t, 1)
	// The user replaces the Service by a manifest without Breakwater's annotations.
	before, err := w.live(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	after := before.DeepCopy()
	unstructured.RemoveNestedField(after.Object, "spec", "template", "metadata", "annotations", v1alpha1.VersionKey)
	unstructured.RemoveNestedField(after.Object, "spec", "template", "metadata", "annotations", v1alpha1.AttemptAnnotation)
	after.SetAnnotations(nil)
	after, err = w.Dynamic.Resource(w.kind.GroupVersionResource()).Namespace(w.namespace).Update(t.Context(), after, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if after.GetGeneration() != before.GetGeneration() {
		t.Errorf("generation %d, want %d: Serving would create a Revision", after.GetGeneration(), before.GetGeneration())
	}
}

func TestOptingInCreatesNoRevisionOfAKnativeService(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.optIn(t, "disabled")
	w := f.createKnativeService(t, 1)
	before, err := w.live(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.optIn(t, v1alpha1.NamespaceEnabled)
	w.awaitSaved(t, 0)
	after, err := w.live(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if after.GetGeneration() != before.GetGeneration() {
		t.Errorf("generation %d, want %d", after.GetGeneration(), before.GetGeneration())
	}
	w.mustPatch(t, releaseOf("v2"))
	w.rollOut(t, 1)
	w.checkKnativeRelease(t, 1)
}

func TestARevisionThatScaledToZeroWaitsToBeJudged(t *testing.T) {
	t.Parallel()
	w := newFixture(t).createKnativeService(t, 0)
	await(t, "the release waits for a pod", func(ctx context.Context) error {
		c, err := w.release(ctx)
		if err != nil {
			return err
		}
		if cond := c.Status.GetCondition(apis.ConditionSucceeded); cond.GetReason() != v1alpha1.ReasonScaledToZero {
			return fmt.Errorf("%s: %+v", c.Status.Phase, cond)
		}
		return nil
	})
	w.scaleDeployments(t, "", 1)
	w.checkKnativeRelease(t, 1)
	c := w.awaitPhase(t, v1alpha1.ReleaseSuccess, 1)
	batches, err := w.batches(t.Context(), c)
	if err != nil || len(batches) != 1 {
		t.Fatalf("%d batches, %v", len(batches), err)
	}
	// Later pods of the Revision are not judged.
	w.scaleDeployments(t, "", 3)
	w.awaitAvailable(t, w.revisionOf(t, 1)+"-deployment", 3)
	w.mustPatch(t, releaseOf("v2"))
	w.rollOut(t, 1)
	w.checkKnativeRelease(t, 2)
	if batches, err = w.batches(t.Context(), c); err != nil || len(batches) != 1 {
		t.Errorf("%d batches of the first Revision, %v", len(batches), err)
	}
}

// The autoscaler follows the requests, whatever is being checked.
func TestTheAutoscalerDeletesAndAddsPodsWhileARevisionIsJudged(t *testing.T) {
	t.Parallel()
	w := newFixture(t).createKnativeService(t, 1)
	w.checkKnativeRelease(t, 1)
	w.mustPatch(t, releaseOf("v2"))
	complete := w.startRollOut(t, 3)
	w.awaitBatch(t, 2)
	name := w.revisionOf(t, 2) + "-deployment"
	for _, pods := range []int32{1, 4, 0} {
		w.scaleDeployments(t, name, pods)
		w.awaitAvailable(t, name, pods)
	}
	complete()
	w.checkKnativeRelease(t, 2)
	w.checkTraffic(t, "")
}

// A request to the tag of a failed Revision wakes it.
func TestAFailedRevisionThatWakesStaysSuspended(t *testing.T) {
	t.Parallel()
	w := newFixture(t).createKnativeService(t, 1)
	w.checkKnativeRelease(t, 1)
	w.mustPatch(t, releaseOf("v2"))
	w.failRollOut(t, 1, 2)
	held, err := w.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	name := w.revisionOf(t, 2) + "-deployment"
	for _, pods := range []int32{0, 2} {
		w.scaleDeployments(t, name, pods)
		w.awaitAvailable(t, name, pods)
	}
	await(t, "the status counts the pods that woke", func(ctx context.Context) error {
		c, err := w.release(ctx)
		if err == nil && (c.Status.Phase != v1alpha1.ReleaseSuspend || c.Status.Counts.Pods < 2) {
			err = fmt.Errorf("%s: %+v", c.Status.Phase, c.Status.Counts)
		}
		return err
	})
	woken, err := w.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if was, is := held.Annotations[v1alpha1.HoldAnnotation], woken.Annotations[v1alpha1.HoldAnnotation]; was != is || woken.Labels[v1alpha1.SuspendLabel] == "" {
		t.Errorf("labels %v, held with %s, before %s", woken.Labels, is, was)
	}
	w.checkTraffic(t, w.revisionOf(t, 1))
}

// awaitAvailable waits until a Deployment has exactly n pods, all of them available.
func (w target) awaitAvailable(t *testing.T, name string, pods int32) {
	t.Helper()
	await(t, fmt.Sprintf("%s has %d pods", name, pods), func(ctx context.Context) error {
		d, err := w.Kube.AppsV1().Deployments(w.namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && (d.Status.ObservedGeneration < d.Generation || d.Status.Replicas != pods || d.Status.AvailableReplicas != pods) {
			err = fmt.Errorf("%+v", d.Status)
		}
		return err
	})
}

// optIn labels the namespace.
func (f fixture) optIn(t *testing.T, value string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{v1alpha1.NamespaceLabel: value}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Kube.CoreV1().Namespaces().Patch(t.Context(), f.namespace, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}
