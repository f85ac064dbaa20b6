//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// cloneSet is the workload.Kind of the CloneSets of these tests.
var cloneSet = workload.Kind{
	GroupVersionKind: schema.GroupVersionKind{Group: "e2e.breakwater.dev", Version: "v1", Kind: "CloneSet"},
	Resource:         "clonesets", Revisions: workload.ControllerRevisions,
	PauseField: workload.Field{Path: []string{"spec", "updateStrategy", "paused"}, Paused: true},
	Counts:     workload.CountReplicas,
}

// cloneSetRights allow Breakwater's controller to watch and hold CloneSets.
const cloneSetRights = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole",
"metadata":{"name":"e2e-clonesets","labels":{"breakwater.dev/controller":"true"}},"rules":[
{"apiGroups":["e2e.breakwater.dev"],"resources":["clonesets"],"verbs":["get","list","watch","patch"]},
{"apiGroups":["e2e.breakwater.dev"],"resources":["clonesets/finalizers"],"verbs":["update"]}]}`

// withCloneSets installs a custom kind and runs its controller.
func withCloneSets(t *testing.T, e *environment) {
	t.Helper()
	n := e.optedInNamespace(t)
	n.configureCloneSets(t)
	n.applyObject(t, cloneSetRights)
	n.cleanup(t, "delete", "clusterrole", "e2e-clonesets")
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		c := cloneSetController{kube: e.kube, objects: e.dynamic.Resource(cloneSet.GroupVersionResource()), revisions: sets.New[string]()}
		wait.UntilWithContext(ctx, c.sync, pollInterval)
	}()
	t.Cleanup(func() { stop(); <-over })
	n.awaitKindConfigured(t, cloneSets())
	await(t, rolloutTimeout, "the controller watches CloneSets", func(ctx context.Context) error {
		list, err := n.change.ChangeWorkloads(n.name).List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) == 0 {
			err = errors.New("no ChangeWorkload")
		}
		return err
	})
}

// cloneSetObject is the CloneSet web, whose pods are replaced one at a time.
func cloneSetObject(seconds int64) *unstructured.Unstructured {
	template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&builder.Deployment("web", size, builder.Simulated).Spec.Template)
	if err != nil {
		panic(err) // the template is always convertible
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": cloneSet.GroupVersion().String(), "kind": cloneSet.Kind,
		"metadata": map[string]any{"name": "web", "labels": map[string]any{"app": "web"}},
		"spec": map[string]any{
			"replicas": int64(size), "minReadySeconds": seconds, "template": template,
			"selector":       map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"updateStrategy": map[string]any{"type": "ReCreate"},
		},
	}}
}

// cloneSetController replaces pods of CloneSets like the controller of
// OpenKruise: a ControllerRevision per template, pods labeled with its name,
// one pod replaced at a time, none while it is paused. Other than that of
// OpenKruise it creates a pod only after the replaced one has ended, see keepPods.
type cloneSetController struct {
	kube    kubernetes.Interface
	objects dynamic.NamespaceableResourceInterface
	// revisions are the ControllerRevisions that exist, by namespace and name.
	revisions sets.Set[string]
}

// sync reconciles all CloneSets once. The next call retries errors.
func (c cloneSetController) sync(ctx context.Context) {
	list, err := c.objects.List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for i := range list.Items {
		if o := &list.Items[i]; o.GetDeletionTimestamp() == nil {
			_ = c.reconcile(ctx, o)
		}
	}
}

// cloneSetSpec holds the fields of a CloneSet that the controller reads.
type cloneSetSpec struct {
	Replicas        int                    `json:"replicas"`
	MinReadySeconds int                    `json:"minReadySeconds"`
	Template        corev1.PodTemplateSpec `json:"template"`
	UpdateStrategy  struct {
		Paused bool `json:"paused"`
	} `json:"updateStrategy"`
}

func (c cloneSetController) reconcile(ctx context.Context, o *unstructured.Unstructured) error {
	raw, err := json.Marshal(o.Object["spec"])
	if err != nil {
		return err
	}
	var spec cloneSetSpec
	if err := json.Unmarshal(raw, &spec); err != nil {
		return err
	}
	revision, err := c.revision(ctx, o)
	if err != nil {
		return err
	}
	list, err := c.kube.CoreV1().Pods(o.GetNamespace()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	// A pod is replaced when it no longer exists, so pods that are being deleted count.
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return !metav1.IsControlledBy(&p, o) })
	// Pods of old revisions come first, then the order of names.
	isOld := func(p corev1.Pod) bool { return p.Labels[appsv1.ControllerRevisionHashLabelKey] != revision }
	rank := func(p corev1.Pod) int { return map[bool]int{true: 0, false: 1}[isOld(p)] }
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
	})
	available, old := 0, 0
	for i := range pods {
		if since, ready := workload.PodReadySince(&pods[i]); ready && time.Since(since) >= time.Duration(spec.MinReadySeconds)*time.Second {
			available++
		}
		if isOld(pods[i]) {
			old++
		}
	}
	switch {
	case len(pods) < spec.Replicas:
		err = c.create(ctx, o, spec.Template, revision)
	case len(pods) > spec.Replicas, old > 0 && !spec.UpdateStrategy.Paused && available == len(pods):
		err = c.kube.CoreV1().Pods(o.GetNamespace()).Delete(ctx, pods[0].Name, *metav1.NewPreconditionDeleteOptions(string(pods[0].UID)))
	}
	status := map[string]any{
		"observedGeneration": o.GetGeneration(), "replicas": int64(len(pods)),
		"updatedReplicas": int64(len(pods) - old), "availableReplicas": int64(available),
	}
	if reflect.DeepEqual(o.Object["status"], status) {
		return err
	}
	o.Object["status"] = status
	_, updateErr := c.objects.Namespace(o.GetNamespace()).UpdateStatus(ctx, o, metav1.UpdateOptions{})
	return errors.Join(err, updateErr)
}

// revision returns the name of the ControllerRevision of the template.
func (c cloneSetController) revision(ctx context.Context, o *unstructured.Unstructured) (string, error) {
	template, _, err := unstructured.NestedMap(o.Object, "spec", "template")
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(map[string]any{"spec": map[string]any{"template": template}})
	if err != nil {
		return "", err
	}
	hash := fnv.New32a()
	if _, err := hash.Write(data); err != nil {
		return "", err
	}
	name := fmt.Sprintf("%s-%08x", o.GetName(), hash.Sum32())
	key := o.GetNamespace() + "/" + name
	if c.revisions.Has(key) {
		return name, nil
	}
	r := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: o.GetAnnotations(),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(o, cloneSet.GroupVersionKind)},
		},
		Data: runtime.RawExtension{Raw: data}, Revision: o.GetGeneration(),
	}
	_, err = c.kube.AppsV1().ControllerRevisions(o.GetNamespace()).Create(ctx, r, metav1.CreateOptions{})
	if err != nil && !apierrs.IsAlreadyExists(err) {
		return "", err
	}
	c.revisions.Insert(key)
	return name, nil
}

func (c cloneSetController) create(ctx context.Context, o *unstructured.Unstructured, template corev1.PodTemplateSpec, revision string) error {
	p := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	p.GenerateName = o.GetName() + "-"
	p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(o, cloneSet.GroupVersionKind)}
	p.Labels[appsv1.ControllerRevisionHashLabelKey] = revision
	_, err := c.kube.CoreV1().Pods(o.GetNamespace()).Create(ctx, p, metav1.CreateOptions{})
	return err
}
