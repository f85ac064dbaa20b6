package cli

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli/diagnosis"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// input gathers the releases of a workload and their batches.
func (c *clients) input(ctx context.Context, t target) (in diagnosis.Input, err error) {
	releases, err := c.listReleases(ctx, t.object.GetNamespace(), selectorOf(t))
	if err != nil {
		return in, err
	}
	batches, err := c.listBatches(ctx, t.object.GetNamespace(), selectorOf(t))
	if err != nil {
		return in, err
	}
	if in, err = c.inputFrom(ctx, t, releases, batches); err != nil {
		return in, err
	}
	namespace, err := c.kube.CoreV1().Namespaces().Get(ctx, in.Namespace, metav1.GetOptions{})
	switch {
	case err == nil:
		in.OptedIn, in.NamespaceLabel = v1alpha1.OptedIn(namespace), namespace.Labels[v1alpha1.NamespaceLabel]
	case in.Annotations[v1alpha1.VersionKey] != "":
		in.OptedIn = true // without the right to read namespaces, the workload shows it
	default:
		return in, c.withRole(fmt.Errorf("read whether namespace %s is opted in: %w", in.Namespace, err), in.Namespace, "view")
	}
	return in, nil
}

// checkOptedIn returns an error if the namespace of a workload is not opted in. Without the right to read namespaces
// it returns none.
func (c *clients) checkOptedIn(ctx context.Context, t target) error {
	namespace, err := c.kube.CoreV1().Namespaces().Get(ctx, t.object.GetNamespace(), metav1.GetOptions{})
	if err != nil || v1alpha1.OptedIn(namespace) {
		return nil //nolint:nilerr // the change itself fails if the API server does not answer
	}
	return fmt.Errorf("%s was not changed, because no release would begin: %s",
		t, diagnosis.NotOptedIn(namespace.Name, namespace.Labels[v1alpha1.NamespaceLabel]))
}

// inputFrom is input without OptedIn and NamespaceLabel. releases and batches are at least those of the workload.
func (c *clients) inputFrom(ctx context.Context, t target, releases []v1alpha1.ChangeWorkload, batches []v1alpha1.ChangePod) (in diagnosis.Input, err error) {
	in = diagnosis.Input{
		Kind: t.kind().Argument(), Namespace: t.object.GetNamespace(), Name: t.object.GetName(),
		Labels: t.object.GetLabels(), Annotations: t.object.GetAnnotations(), Releases: ofWorkload(t, releases),
	}
	if in.Missed, err = c.missed(ctx, t, in.Releases); err != nil {
		return in, err
	}
	uids := map[types.UID]bool{}
	for _, r := range in.Releases {
		uids[r.UID] = true
	}
	for _, b := range batches {
		if owner := metav1.GetControllerOf(&b); owner != nil && uids[owner.UID] {
			in.Batches = append(in.Batches, b)
		}
	}
	return in, nil
}

// selectorOf selects the releases and batches of the workloads that have the name of one.
func selectorOf(t target) string {
	return v1alpha1.DeploymentNameLabel + "=" + v1alpha1.LabelValue(t.object.GetName())
}

// ofWorkload returns those releases that are of a workload.
func ofWorkload(t target, releases []v1alpha1.ChangeWorkload) []v1alpha1.ChangeWorkload {
	var own []v1alpha1.ChangeWorkload
	for _, r := range releases {
		if r.Spec.WorkloadRef.UID == t.object.GetUID() {
			own = append(own, r)
		}
	}
	return own
}

func (c *clients) listReleases(ctx context.Context, namespace, selector string) ([]v1alpha1.ChangeWorkload, error) {
	list, err := c.breakwater.AppV1alpha1().ChangeWorkloads(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, c.listError("releases", "change", namespace, err)
	}
	return list.Items, nil
}

func (c *clients) listBatches(ctx context.Context, namespace, selector string) ([]v1alpha1.ChangePod, error) {
	list, err := c.breakwater.AppV1alpha1().ChangePods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, c.listError("batches", "change", namespace, err)
	}
	return list.Items, nil
}

// releasesOf returns the releases of a workload.
func (c *clients) releasesOf(ctx context.Context, t target) ([]v1alpha1.ChangeWorkload, error) {
	releases, err := c.listReleases(ctx, t.object.GetNamespace(), selectorOf(t))
	return ofWorkload(t, releases), err
}

// saved returns the saved templates of a workload, latest attempt first.
func (c *clients) saved(ctx context.Context, t target) ([]savedtemplate.Saved, error) {
	w, err := workload.FromUnstructured(t.kind(), t.object)
	if err != nil {
		return nil, err
	}
	all, err := savedtemplate.List(ctx, c.kube, w)
	return all, c.withRole(err, w.Namespace, "view")
}

// inputOf gathers the releases of the workload of an argument.
func (c *clients) inputOf(ctx context.Context, argument string) (diagnosis.Input, error) {
	t, err := c.workload(ctx, argument)
	if err != nil {
		return diagnosis.Input{}, err
	}
	return c.input(ctx, t)
}

// currentInputOf is inputOf for a command about the current release of a workload, with the object that the
// argument names. An argument that names another release, or a batch of one, is an error. more are the other
// arguments of the command.
func (c *clients) currentInputOf(ctx context.Context, argument, command, more string) (named, t target, in diagnosis.Input, err error) {
	if named, err = c.target(ctx, argument); err != nil {
		return named, t, in, err
	}
	if t, err = c.workloadAbove(ctx, named); err != nil {
		return named, t, in, err
	}
	if in, err = c.input(ctx, t); err != nil {
		return named, t, in, err
	}
	if named.object.GetUID() != t.object.GetUID() && !in.IsCurrent(named.object) {
		current := in.CurrentRelease()
		err = argumentErrorf("%s is neither the current release nor a batch of it: `%s%s` is for the current release, %s, attempt %d",
			named.object.GetName(), c.command(command, t.String(), in.Namespace), more, current.Version, current.Attempt)
	}
	return named, t, in, err
}
