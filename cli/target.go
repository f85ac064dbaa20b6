package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// target is an object that an argument names.
type target struct {
	resource schema.GroupVersionResource
	object   *unstructured.Unstructured
}

// argumentError is the error of an argument that names no object, or not one that the command is for.
type argumentError string

func (e argumentError) Error() string { return string(e) }

func argumentErrorf(format string, args ...any) error {
	return argumentError(fmt.Sprintf(format, args...))
}

// kindOf returns the kind of an object: one that is built in, or only the name of another one.
func kindOf(of schema.GroupVersionKind) workload.Kind {
	for _, k := range workload.BuiltIn() {
		if k.GroupKind() == of.GroupKind() {
			return k
		}
	}
	return workload.Kind{GroupVersionKind: of}
}

func (t target) kind() workload.Kind { return kindOf(t.object.GroupVersionKind()) }

// String returns the target as an argument.
func (t target) String() string { return t.kind().Argument() + "/" + t.object.GetName() }

// mapping returns the resource of a kind, and whether its objects are in namespaces.
func (c *clients) mapping(kind string) (*meta.RESTMapping, error) {
	resource := schema.ParseGroupResource(kind).WithVersion("")
	found, err := c.mapper.ResourceFor(resource)
	if meta.IsNoMatchError(err) { // the mapper leaves out groups that it could not read
		meta.MaybeResetRESTMapper(c.mapper)
		found, err = c.mapper.ResourceFor(resource)
	}
	if err != nil {
		if meta.IsNoMatchError(err) {
			return nil, argumentErrorf("the cluster has no kind %q: write "+argumentForm+"web; `kubectl api-resources%s` lists the kinds", kind, c.flags)
		}
		return nil, fmt.Errorf("look up kind %q: %w", kind, err)
	}
	of, err := c.mapper.KindFor(found)
	if err != nil {
		return nil, fmt.Errorf("look up kind %q: %w", kind, err)
	}
	mapping, err := c.mapper.RESTMapping(of.GroupKind(), of.Version)
	if err != nil {
		return nil, fmt.Errorf("look up kind %q: %w", kind, err)
	}
	return mapping, nil
}

// argumentForm is the form of the argument for an object, and the beginning of an example that a name follows.
const argumentForm = "KIND/NAME, for example deployment/"

// oneArgument checks the number of arguments of a command for one object KIND/NAME. kubectl itself also accepts KIND NAME.
func oneArgument(count cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 2 && !strings.Contains(args[0]+args[1], "/") {
			return fmt.Errorf("write %s/%s, as one argument", args[0], args[1])
		}
		if err := count(c, args); err != nil {
			return fmt.Errorf("%w: write one "+argumentForm+"web", err)
		}
		return nil
	}
}

// target reads an object that role view may read: see read.
func (c *clients) target(ctx context.Context, argument string) (target, error) {
	t, namespace, err := c.read(ctx, argument)
	return t, c.withRole(err, namespace, "view")
}

// read reads the object of an argument KIND/NAME, in the selected namespace if its kind has one. It returns this namespace.
func (c *clients) read(ctx context.Context, argument string) (_ target, namespace string, err error) {
	kind, name, ok := strings.Cut(argument, "/")
	if kind == "" || name == "" || strings.Contains(name, "/") {
		example := "web"
		if !ok {
			example = argument
		}
		return target{}, "", argumentErrorf("%q is not the name of an object: write "+argumentForm+"%s", argument, example)
	}
	mapping, err := c.mapping(kind)
	if err != nil {
		return target{}, "", err
	}
	var client dynamic.ResourceInterface = c.dynamic.Resource(mapping.Resource)
	notFound := argumentErrorf("the cluster has no %s %q", kind, name)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace, client = c.namespace, c.dynamic.Resource(mapping.Resource).Namespace(c.namespace)
		notFound = argumentErrorf("%s %q is not in namespace %s: select another one with -n", kind, name, c.namespace)
	}
	o, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return target{}, namespace, notFound
	} else if err != nil {
		return target{}, namespace, fmt.Errorf("read %s: %w", argument, err)
	}
	return target{mapping.Resource, o}, namespace, nil
}

// workload reads the workload of an argument, which may name one of its releases or batches.
func (c *clients) workload(ctx context.Context, argument string) (target, error) {
	t, err := c.target(ctx, argument)
	if err != nil {
		return target{}, err
	}
	return c.workloadAbove(ctx, t)
}

// workloadAbove returns an object if it is a workload, or reads the workload of a release or batch.
func (c *clients) workloadAbove(ctx context.Context, t target) (_ target, err error) {
	for range 2 { // a batch is owned by a release, a release by a workload
		if t.object.GroupVersionKind().Group != v1alpha1.GroupName {
			break
		}
		owner := metav1.GetControllerOf(t.object)
		if owner == nil {
			return target{}, argumentErrorf("%s has no owner: name its workload", t)
		}
		group, _, _ := strings.Cut(owner.APIVersion, "/")
		if t, err = c.target(ctx, strings.ToLower(owner.Kind)+"."+group+"/"+owner.Name); err != nil {
			return target{}, err
		}
	}
	if of, err := c.partOf(ctx, t); err != nil {
		return target{}, err
	} else if of != "" {
		return target{}, argumentErrorf("%s is a part of %s: write %[2]s", t, of)
	}
	if _, found, _ := unstructured.NestedMap(t.object.Object, "spec", "template"); !found {
		return target{}, argumentErrorf("%s is not a workload: it has no pod template. Name a Deployment, StatefulSet, DaemonSet, Knative Service (ksvc), or a kind of ConfigMap config-workloads", t)
	}
	return t, nil
}

// partOf returns, as an argument, the workload of a ReplicaSet, or the Knative Service of a Deployment; "" for other objects.
func (c *clients) partOf(ctx context.Context, t target) (string, error) {
	owner := metav1.GetControllerOf(t.object)
	switch of := t.kind().GroupKind(); {
	case of == workload.Deployment.GroupKind():
		if name, _, ok := workload.KnativeServiceOf(t.object); ok {
			return "ksvc/" + name, nil
		}
		return "", nil
	case owner == nil || of != appsv1.SchemeGroupVersion.WithKind("ReplicaSet").GroupKind():
		return "", nil
	}
	above, err := c.target(ctx, kindOf(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)).Argument()+"/"+owner.Name)
	if err != nil {
		return "", err
	}
	of, err := c.partOf(ctx, above)
	return cmp.Or(of, above.String()), err
}
