package podpermission

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

func TestPodsAreReconciledWhenTheRequestOfTheirNamespaceChanges(t *testing.T) {
	namespace := func(labels, annotations map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: labels, Annotations: annotations}}
	}
	enabled := map[string]string{podmeta.Label: podmeta.LabelEnabled}
	for name, tc := range map[string]struct {
		was, is *corev1.Namespace
		want    bool
	}{
		"added":            {nil, namespace(nil, nil), true},
		"unchanged":        {namespace(enabled, nil), namespace(enabled, nil), false},
		"other annotation": {namespace(enabled, nil), namespace(enabled, map[string]string{"team": "shop"}), false},
		"label added":      {namespace(nil, nil), namespace(enabled, nil), true},
		"label removed":    {namespace(enabled, nil), namespace(nil, nil), true},
		"sets added":       {namespace(enabled, nil), namespace(enabled, map[string]string{podmeta.PermissionSetAnnotation: "web"}), true},
		"empty sets added": {namespace(enabled, nil), namespace(enabled, map[string]string{podmeta.PermissionSetAnnotation: ""}), true},
	} {
		t.Run(name, func(t *testing.T) {
			enqueued := 0
			h := namespaceHandler(func(name string) {
				if name == "shop" {
					enqueued++
				}
			})
			if tc.was == nil {
				h.OnAdd(tc.is, false)
			} else {
				h.OnUpdate(tc.was, tc.is)
			}
			if (enqueued == 1) != tc.want || enqueued > 1 {
				t.Errorf("enqueued %d times, want %t", enqueued, tc.want)
			}
		})
	}
}

// The workload of the pod still requests sets when its namespace is no longer enabled.
func TestTheConditionOfAnUninjectedPodFollowsTheLabelOfItsNamespace(t *testing.T) {
	p := pod(withoutInitContainer)
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: podmeta.ConditionInjected, Status: corev1.ConditionFalse, Reason: podmeta.ReasonPermissionNotInjected})
	w := newFixture(t, p, nil)
	w.requiredSets.Owners = setsOfOwner{}
	w.reconcile(t)
	if c := podmeta.Condition(w.stored(t), podmeta.ConditionInjected); c == nil || c.Reason != podmeta.ReasonNamespaceNotEnabled {
		t.Errorf("condition %+v", c)
	}
}

// stored returns the pod as the API server has it.
func (f *fixture) stored(t *testing.T) *corev1.Pod {
	t.Helper()
	p, err := f.kube.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// setsOfOwner is an owner with the set web.
type setsOfOwner struct{}

func (setsOfOwner) Annotation(context.Context, string, []metav1.OwnerReference, string) (string, bool, error) {
	return "web", true, nil
}

// controlledPod is a new pod without the init container, whose annotation may be on its workload.
func controlledPod(changes ...func(*corev1.Pod)) *corev1.Pod {
	return pod(slices.Concat([]func(*corev1.Pod){withoutInitContainer, func(p *corev1.Pod) {
		p.Labels, p.CreationTimestamp = nil, metav1.NewTime(zero)
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "replicaset", Controller: new(true)}}
	}}, changes)...)
}

// A namespace may lose its label. Nothing else tells that the pods of its Deployments start without permissions.
func TestANewPodWhoseWorkloadRequestsSetsIsReportedInANamespaceThatIsNotEnabled(t *testing.T) {
	w := newFixture(t, controlledPod(), nil)
	w.requiredSets.Owners = setsOfOwner{}
	w.reconcile(t)
	if c := podmeta.Condition(w.stored(t), podmeta.ConditionInjected); c == nil || c.Reason != podmeta.ReasonNamespaceNotEnabled {
		t.Errorf("condition %+v", c)
	}
	if events := w.events(); !strings.Contains(events, podmeta.ReasonNamespaceNotEnabled) || w.uninjected.counts()[podmeta.ReasonNamespaceNotEnabled] != 1 {
		t.Errorf("events %q, counts %v", events, w.uninjected.counts())
	}
}

// optedOut is an owner that needs no sets, whatever its namespace says.
type optedOut struct{}

func (optedOut) Annotation(context.Context, string, []metav1.OwnerReference, string) (string, bool, error) {
	return "", true, nil
}

// If the condition depended on whether the pod has it, it would be added and removed without end.
func TestAWorkloadThatNeedsNoSetsOverridesItsNamespaceThatIsNotEnabled(t *testing.T) {
	p := controlledPod()
	w := newFixture(t, p, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Annotations: map[string]string{podmeta.PermissionSetAnnotation: "web"}}})
	w.requiredSets.Owners = optedOut{}
	for range 3 {
		w.reconcile(t)
		w.stored(t).DeepCopyInto(p) // the watch
	}
	for _, a := range w.kube.Actions() {
		if a.GetVerb() == "patch" {
			t.Errorf("%s", a.(clienttesting.PatchAction).GetPatch())
		}
	}
}

// countedReads are the owners of pods without sets, and the number of their reads.
type countedReads struct {
	noOwners
	reads int
}

func (c *countedReads) Annotation(ctx context.Context, namespace string, refs []metav1.OwnerReference, key string) (string, bool, error) {
	c.reads++
	return c.noOwners.Annotation(ctx, namespace, refs, key)
}

// Most pods of a cluster may be in namespaces that never used permissions.
func TestOwnersInNamespacesThatAreNotEnabledAreReadOncePerMinuteForNewPods(t *testing.T) {
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		at   []time.Duration
		want int
		// known is a key of the controllers without sets.
		known string
	}{
		"a new pod that changes often": {controlledPod(), []time.Duration{0, time.Second, ownersTTL}, 1, ""},
		"a minute later":               {controlledPod(), []time.Duration{0, ownersTTL + 1}, 2, ""},
		"a pod that is not new":        {controlledPod(), []time.Duration{newPodTime + 1}, 0, ""},
		"a pod without a controller":   {controlledPod(func(p *corev1.Pod) { p.OwnerReferences = nil }), []time.Duration{0}, 0, ""},
		// A user may write the UID of another namespace's controller.
		"a controller that another namespace names": {controlledPod(), []time.Duration{0}, 1, "other/" + string(controlledPod().OwnerReferences[0].UID)},
		"a controller that is known":                {controlledPod(), []time.Duration{0}, 0, controlledPod().Namespace + "/" + string(controlledPod().OwnerReferences[0].UID)},
	} {
		t.Run(name, func(t *testing.T) {
			w, owners := newFixture(t, tc.pod, nil), &countedReads{}
			w.requiredSets.Owners = owners
			w.ownersWithoutSets.Add(tc.known, nil, ownersTTL)
			for _, after := range tc.at {
				w.clock.SetTime(zero.Add(after))
				w.reconcile(t)
			}
			if owners.reads != tc.want {
				t.Errorf("%d reads, want %d", owners.reads, tc.want)
			}
		})
	}
}

// Each Job of a batch cluster is another controller. The workers also add finalizers, for which pods wait.
func TestOwnersOfManyNewPodsAreReadAtALimitedRate(t *testing.T) {
	const pods = 2 * ownersReadBurst
	w, owners := newFixture(t, controlledPod(), nil), &countedReads{}
	w.requiredSets.Owners = owners
	check := func() (requeued int) {
		for i := range pods {
			_, err := w.injectionProblem(t.Context(), controlledPod(func(p *corev1.Pod) { p.OwnerReferences[0].UID = types.UID(strconv.Itoa(i)) }))
			if later, _ := controller.IsRequeueKey(err); later {
				requeued++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		return requeued
	}
	if requeued := check(); owners.reads != ownersReadBurst || requeued != pods-ownersReadBurst {
		t.Errorf("%d reads and %d pods requeued of %d, want %d reads", owners.reads, requeued, pods, ownersReadBurst)
	}
	w.clock.SetTime(zero.Add(ownersReadDelay))
	if requeued := check(); owners.reads != pods || requeued != 0 {
		t.Errorf("later: %d reads in all and %d pods requeued, want %d and none", owners.reads, requeued, pods)
	}
}

// A pod with the init container may lack the label, so its owners are read.
func TestAPodGetsTheFinalizerBeforeItsOwnersAreRead(t *testing.T) {
	w := newFixture(t, pod(func(p *corev1.Pod) {
		p.Labels, p.OwnerReferences, p.CreationTimestamp = nil, controlledPod().OwnerReferences, metav1.NewTime(zero)
	}), nil)
	w.ownersReads.AllowN(zero, ownersReadBurst)
	if protected, requeued := w.reconcile(t); !protected || !requeued {
		t.Errorf("protected %t, requeued %t", protected, requeued)
	}
}

func TestTheConditionIsRemovedWhenAPodNoLongerRequestsSets(t *testing.T) {
	p := pod(withoutInitContainer)
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: podmeta.ConditionInjected, Status: corev1.ConditionFalse, Reason: podmeta.ReasonPermissionNotInjected})
	w := newFixture(t, p, nil)
	w.reconcile(t)
	if c := podmeta.Condition(w.stored(t), podmeta.ConditionInjected); c != nil {
		t.Errorf("condition %+v", c)
	}
	if events := w.events(); events != "" {
		t.Errorf("events %q", events)
	}
}
