package property

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	duckv1 "knative.dev/pkg/apis/duck/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

type object interface {
	runtime.Object
	metav1.Object
}

// id names an object of the API server.
type id struct{ resource, namespace, name string }

// write is one stored write.
type write struct {
	by            string
	id            id
	before, after object // nil if the object does not exist
	fields        []string
}

// api is a model of the API server, with resource versions and conflicts.
type api struct {
	clock   clock.PassiveClock
	objects map[id]object
	version int64
	uids    int
	// journal has every write, for the informers.
	journal []write
	// beforeWrite and afterWrite are called around a client's write. They may panic.
	beforeWrite, afterWrite func(by string, of id)
	// stored is called with every stored write.
	stored func(write)
}

func newAPI(c clock.PassiveClock) *api {
	return &api{
		clock: c, objects: map[id]object{},
		beforeWrite: func(string, id) {}, afterWrite: func(string, id) {}, stored: func(write) {},
	}
}

func empty(resource string) object {
	switch resource {
	case "changepods":
		return &v1alpha1.ChangePod{}
	case "changeworkloads":
		return &v1alpha1.ChangeWorkload{}
	case "deployments":
		return &appsv1.Deployment{}
	case "replicasets":
		return &appsv1.ReplicaSet{}
	case "pods":
		return &corev1.Pod{}
	case "namespaces":
		return &corev1.Namespace{}
	case "configmaps":
		return &corev1.ConfigMap{}
	case "secrets":
		return &corev1.Secret{}
	case "opsconfiginfoes":
		return &v1alpha1.OpsConfigInfo{}
	default:
		panic("no object of " + resource)
	}
}

func copyOf(o object) object {
	if o == nil {
		return nil
	}
	return o.DeepCopyObject().(object)
}

// redate replaces times of the system clock, which Knative sets in conditions, by
// the time of the fake clock, which is months earlier.
func (a *api) redate(o object) {
	r, ok := o.(duckv1.KRShaped)
	if !ok {
		return
	}
	now := a.clock.Now()
	conditions := r.GetStatus().Conditions
	for i := range conditions {
		if t := &conditions[i].LastTransitionTime.Inner; t.Sub(now) > 30*24*time.Hour {
			*t = metav1.NewTime(now)
		}
	}
}

// store writes an object; nil deletes it.
func (a *api) store(by string, of id, next object) {
	before := a.objects[of]
	a.version++
	if next == nil {
		delete(a.objects, of)
	} else {
		a.redate(next)
		next.SetResourceVersion(strconv.FormatInt(a.version, 10))
		a.objects[of] = next
	}
	w := write{by: by, id: of, before: before, after: next, fields: differences(before, next)}
	a.journal = append(a.journal, w)
	a.stored(w)
}

// create creates an object and sets the metadata that the API server sets.
func (a *api) create(by, resource string, o object) (object, error) {
	of := id{resource, o.GetNamespace(), o.GetName()}
	if _, there := a.objects[of]; there {
		return nil, apierrors.NewAlreadyExists(group(resource), of.name)
	}
	o = copyOf(o)
	a.uids++
	o.SetUID(types.UID(fmt.Sprintf("%s-%d", strings.TrimSuffix(resource, "s"), a.uids)))
	o.SetGeneration(1)
	o.SetCreationTimestamp(metav1.NewTime(a.clock.Now().Truncate(1e9)))
	a.store(by, of, o)
	return copyOf(o), nil
}

// change edits an object without a conflict.
func change[T object](a *api, by string, of id, edit func(T)) {
	current, ok := a.objects[of]
	if !ok {
		return
	}
	next := copyOf(current)
	edit(next.(T))
	if len(differences(current, next)) == 0 {
		return
	}
	if differ(current, next, "spec") {
		next.SetGeneration(next.GetGeneration() + 1)
	}
	a.store(by, of, next)
}

// all returns the objects of a resource, by name.
func all[T object](a *api, resource string) []T {
	var out []T
	for of, o := range a.objects {
		if of.resource == resource {
			out = append(out, o.(T))
		}
	}
	slices.SortFunc(out, func(x, y T) int {
		return strings.Compare(x.GetNamespace()+"/"+x.GetName(), y.GetNamespace()+"/"+y.GetName())
	})
	return out
}

func group(resource string) schema.GroupResource {
	return schema.GroupResource{Group: v1alpha1.GroupName, Resource: resource}
}

// react is the API server's side of a fake clientset of one process.
func (a *api) react(by string) clienttesting.ReactionFunc {
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		of := id{resource: action.GetResource().Resource, namespace: action.GetNamespace()}
		out, err := a.serve(by, of, action)
		if err != nil {
			return true, nil, err
		}
		if verb := action.GetVerb(); verb != "get" && verb != "list" {
			a.afterWrite(by, of)
		}
		return true, out, nil
	}
}

// reactUnstructured is react for a dynamic client.
func (a *api) reactUnstructured(by string) clienttesting.ReactionFunc {
	typed := a.react(by)
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		_, o, err := typed(action)
		if err != nil || o == nil {
			return true, nil, err
		}
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		return true, &unstructured.Unstructured{Object: raw}, err
	}
}

func (a *api) serve(by string, of id, action clienttesting.Action) (runtime.Object, error) {
	switch action.GetVerb() {
	case "get":
		of.name = action.(clienttesting.GetAction).GetName()
		o, ok := a.objects[of]
		if !ok {
			return nil, apierrors.NewNotFound(group(of.resource), of.name)
		}
		return copyOf(o), nil
	case "list":
		return a.list(of, action.(clienttesting.ListAction).GetListRestrictions())
	case "create":
		o := action.(clienttesting.CreateAction).GetObject().(object)
		of.name = o.GetName()
		a.beforeWrite(by, of)
		return a.create(by, of.resource, o)
	case "delete":
		return nil, a.remove(by, of, action.(clienttesting.DeleteActionImpl))
	case "patch":
		patch := action.(clienttesting.PatchAction)
		of.name = patch.GetName()
		a.beforeWrite(by, of)
		return a.patch(by, of, patch.GetPatchType(), patch.GetPatch(), patch.GetSubresource())
	default:
		return nil, fmt.Errorf("the model has no %s of %s", action.GetVerb(), of.resource)
	}
}

func (a *api) list(of id, only clienttesting.ListRestrictions) (runtime.Object, error) {
	match := func(o object) bool {
		return (of.namespace == "" || o.GetNamespace() == of.namespace) && only.Labels.Matches(labelsOf(o))
	}
	switch of.resource {
	case "changeworkloads":
		out := &v1alpha1.ChangeWorkloadList{}
		for _, o := range all[*v1alpha1.ChangeWorkload](a, of.resource) {
			if match(o) {
				out.Items = append(out.Items, *o.DeepCopy())
			}
		}
		return out, nil
	case "changepods":
		node, byNode := only.Fields.RequiresExactMatch("status.changePodId")
		out := &v1alpha1.ChangePodList{}
		for _, o := range all[*v1alpha1.ChangePod](a, of.resource) {
			if match(o) && (!byNode || o.Status.ChangePodID == node) {
				out.Items = append(out.Items, *o.DeepCopy())
			}
		}
		return out, nil
	default:
		return nil, fmt.Errorf("the model has no list of %s", of.resource)
	}
}

func (a *api) remove(by string, of id, action clienttesting.DeleteActionImpl) error {
	of.name = action.Name
	a.beforeWrite(by, of)
	o, ok := a.objects[of]
	if !ok {
		return apierrors.NewNotFound(group(of.resource), of.name)
	}
	if p := action.DeleteOptions.Preconditions; p != nil && p.UID != nil && *p.UID != o.GetUID() {
		return apierrors.NewConflict(group(of.resource), of.name, nil)
	}
	a.store(by, of, nil)
	return nil
}

// patch merges (RFC 7386) or patches (RFC 6902).
func (a *api) patch(by string, of id, kind types.PatchType, patch []byte, subresource string) (runtime.Object, error) {
	current, ok := a.objects[of]
	if !ok {
		return nil, apierrors.NewNotFound(group(of.resource), of.name)
	}
	if err := sameVersion(of, current, kind, patch); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(current)
	if err != nil {
		return nil, err
	}
	var merged []byte
	switch kind {
	case types.MergePatchType:
		merged, err = jsonpatch.MergePatch(raw, patch)
	case types.JSONPatchType:
		var ops jsonpatch.Patch
		if ops, err = jsonpatch.DecodePatch(patch); err == nil {
			merged, err = ops.Apply(raw)
		}
		if err != nil {
			return nil, apierrors.NewInvalid(schema.GroupKind{Kind: of.resource}, of.name, nil)
		}
	default:
		err = fmt.Errorf("the model has no %s", kind)
	}
	if err != nil {
		return nil, err
	}
	next := empty(of.resource)
	if err := json.Unmarshal(merged, next); err != nil {
		return nil, err
	}
	changed := differences(current, next)
	if len(changed) == 0 {
		return copyOf(current), nil
	}
	for _, field := range changed {
		if isStatus := strings.HasPrefix(field, "status."); isStatus != (subresource == "status") {
			return nil, fmt.Errorf("%s writes %s of %s through subresource %q", by, field, of.name, subresource)
		}
	}
	if differ(current, next, "spec") {
		next.SetGeneration(next.GetGeneration() + 1)
	}
	a.store(by, of, next)
	return copyOf(next), nil
}

// sameVersion is the optional precondition of a patch.
func sameVersion(of id, current object, kind types.PatchType, patch []byte) error {
	if kind == types.JSONPatchType {
		return nil
	}
	var said struct {
		Metadata struct {
			ResourceVersion *string    `json:"resourceVersion"`
			UID             *types.UID `json:"uid"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(patch, &said); err != nil {
		return err
	}
	version, uid := said.Metadata.ResourceVersion, said.Metadata.UID
	if (version != nil && *version != current.GetResourceVersion()) || (uid != nil && *uid != current.GetUID()) {
		return apierrors.NewConflict(group(of.resource), of.name, nil)
	}
	return nil
}

// differences returns the fields in which two objects differ, as status.x,
// metadata.x, spec or data.
func differences(before, after object) []string {
	var out []string
	b, n := shape(before), shape(after)
	for _, part := range []string{"metadata", "status"} {
		was, _ := b[part].(map[string]any)
		is, _ := n[part].(map[string]any)
		for _, field := range keys(was, is) {
			bookkept := part == "metadata" && slices.Contains([]string{"resourceVersion", "generation", "creationTimestamp", "uid"}, field)
			if !bookkept && encoded(was[field]) != encoded(is[field]) {
				out = append(out, part+"."+field)
			}
		}
	}
	for _, part := range []string{"spec", "data"} {
		if encoded(b[part]) != encoded(n[part]) {
			out = append(out, part)
		}
	}
	return out
}

func differ(before, after object, part string) bool {
	return encoded(shape(before)[part]) != encoded(shape(after)[part])
}

func shape(o object) map[string]any {
	out := map[string]any{}
	if o == nil {
		return out
	}
	raw, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		panic(err)
	}
	return out
}

func encoded(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func keys(maps ...map[string]any) []string {
	var out []string
	for _, m := range maps {
		for k := range m {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
