//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/test/e2e/faultinjection"
)

const eventing = faultinjection.Eventing

// target is a component of the system that a test disturbs.
type target = faultinjection.Target

func dispatcher() target { return faultinjection.Dispatcher() }

// component is a Deployment of Breakwater.
func component(name string) target { return faultinjection.Component(name) }

// function is a function of Breakwater.
func function(name string) target { return faultinjection.Function(name) }

// pods returns the pods of a target that are not terminating.
func (e *environment) pods(ctx context.Context, p target) ([]corev1.Pod, error) {
	return p.Pods(ctx, e.kube)
}

// scaleToZero scales a Deployment to zero and kills its pods. Undo restores the
// replicas and waits until they are available; the end of the test restores
// them too.
func (e *environment) scaleToZero(t *testing.T, namespace, name string) (undo func()) {
	t.Helper()
	deployments := e.kube.AppsV1().Deployments(namespace)
	d, err := deployments.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	was := *d.Spec.Replicas
	scale := func(ctx context.Context, replicas int32) error {
		_, err := deployments.Patch(ctx, name, types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{})
		return err
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), shortTimeout)
		defer cancel()
		if err := scale(ctx, was); err != nil {
			t.Errorf("restore %s: %v", name, err)
		}
	})
	if err := scale(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	p := target{Namespace: namespace, Selector: metav1.FormatLabelSelector(d.Spec.Selector)}
	var stopped []corev1.Pod
	await(t, shortTimeout, name+" is stopped", func(ctx context.Context) error {
		list, err := e.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: p.Selector})
		if err != nil {
			return err
		}
		for i := range list.Items {
			stopped = append(stopped, list.Items[i])
			if err := faultinjection.Delete(ctx, e.kube, &list.Items[i]); err != nil {
				return err
			}
		}
		// A process can outlive its pod by seconds, and serve connections.
		running := len(list.Items)
		for i := range stopped {
			killed, err := faultinjection.KillProcesses(&stopped[i])
			if err != nil {
				return err
			}
			running += killed
		}
		if running > 0 {
			return fmt.Errorf("%d pods or processes exist", running)
		}
		return nil
	})
	return func() {
		t.Helper()
		if err := scale(t.Context(), was); err != nil {
			t.Fatal(err)
		}
		e.awaitDeployed(t, namespace, name)
	}
}

// awaitDeployed waits until all replicas of a Deployment are available.
func (e *environment) awaitDeployed(t *testing.T, namespace, name string) {
	t.Helper()
	await(t, recoveryTimeout, name+" is available", func(ctx context.Context) error {
		d, err := e.kube.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if d.Status.ObservedGeneration < d.Generation || d.Status.AvailableReplicas < *d.Spec.Replicas {
			return fmt.Errorf("%+v", d.Status)
		}
		return nil
	})
}

func knativeServices() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "serving.knative.dev", Version: "v1", Resource: "services"}
}

// deleteFunction deletes a function. Undo creates it again and waits until it
// and its Triggers are ready; the end of the test creates it too.
func (e *environment) deleteFunction(t *testing.T, name string) (undo func()) {
	t.Helper()
	services := e.dynamic.Resource(knativeServices()).Namespace(system)
	was, err := services.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	copied := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": was.GetAPIVersion(), "kind": was.GetKind(), "spec": was.Object["spec"],
	}}
	copied.SetName(name)
	copied.SetLabels(was.GetLabels())
	annotations := was.GetAnnotations()
	// Serving writes these annotations and rejects a create request with them.
	delete(annotations, "serving.knative.dev/creator")
	delete(annotations, "serving.knative.dev/lastModifier")
	copied.SetAnnotations(annotations)

	create := func(ctx context.Context) error {
		_, err := services.Create(ctx, copied, metav1.CreateOptions{})
		if apierrs.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), shortTimeout)
		defer cancel()
		if err := create(ctx); err != nil {
			t.Errorf("restore %s: %v", name, err)
		}
	})
	if err := services.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}); err != nil {
		t.Fatal(err)
	}
	await(t, recoveryTimeout, "function "+name+" is deleted", func(ctx context.Context) error {
		_, err := services.Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrs.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return errors.New("the function is terminating")
	})
	return func() {
		t.Helper()
		if err := create(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.awaitFunctions(t)
	}
}

// awaitFunctions waits until every function and every Trigger is ready.
func (e *environment) awaitFunctions(t *testing.T) {
	t.Helper()
	await(t, recoveryTimeout, "all functions and Triggers are ready", func(ctx context.Context) error {
		return faultinjection.FunctionsReady(ctx, e.dynamic)
	})
}
