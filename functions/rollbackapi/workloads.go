package rollbackapi

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/pagedlist"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// kindOf returns the kind of a name; an empty one is Deployment.
func kindOf(name string) (workload.Kind, error) {
	if name == "" {
		return workload.Deployment, nil
	}
	var known []string
	for _, k := range workload.BuiltIn() {
		if k.Optional {
			continue // openapi has no permissions for it
		}
		if strings.EqualFold(k.Kind, name) {
			return k, nil
		}
		known = append(known, k.Kind)
	}
	return workload.Kind{}, invalid("kind", name, "write "+strings.Join(known, ", ")+", or leave it out")
}

// checkNamespace returns a problem if the name is not valid for a namespace.
func checkNamespace(name string) error {
	if msgs := validation.IsDNS1123Label(name); len(msgs) > 0 {
		return invalid("namespace", name, "write the name of a namespace: "+msgs[0])
	}
	return nil
}

// history is a workload with its versions.
type history struct {
	*workload.Workload
	release v1alpha1.Release
	known   bool
	// succeeded are the versions that succeeded, newest first; failed are the versions
	// whose last check failed.
	succeeded []savedtemplate.Saved
	failed    map[string]bool
}

// newest returns the newest good version, if any.
func (g *history) newest() (savedtemplate.Saved, bool) {
	return savedtemplate.Newest(g.succeeded, g.release.Version, func(v string) bool { return g.failed[v] })
}

func (s *service) readVersions(ctx context.Context, w *workload.Workload) (*history, error) {
	g := &history{Workload: w}
	g.release, g.known = v1alpha1.ReleaseOf(w.Annotations)
	var err error
	if g.succeeded, err = savedtemplate.ListReleases(s.pagesInTurn(ctx, w.Namespace), s.Kube, w); err != nil {
		return nil, err
	}
	releases, err := s.Change.AppV1alpha1().ChangeWorkloads(w.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: v1alpha1.DeploymentNameLabel + "=" + v1alpha1.LabelValue(w.Name)})
	if err != nil {
		return nil, fmt.Errorf("list the ChangeWorkloads of %s %s/%s: %w", w.Kind.Kind, w.Namespace, w.Name, err)
	}
	g.failed = savedtemplate.FailedVersions(slices.DeleteFunc(releases.Items, func(c v1alpha1.ChangeWorkload) bool {
		return c.Spec.WorkloadRef.UID != w.UID
	}))
	return g, nil
}

// templates returns the templates that the workload's controller has stored, without their content.
func (s *service) templates(ctx context.Context, w selectable) ([]savedtemplate.Template, error) {
	return savedtemplate.ListFromController(s.pagesInTurn(ctx, w.Namespace), s.Kube, s.Dynamic, w.Workload, w.selector, func(t savedtemplate.Template) savedtemplate.Template {
		return savedtemplate.Template{Name: t.Name, Revision: t.Revision, Version: t.Version}
	})
}

// pagesInTurn returns a context with which each page of a list is read and used in turn: a list may have many.
func (s *service) pagesInTurn(ctx context.Context, namespace string) context.Context {
	return pagedlist.WithTurn(ctx, func(ctx context.Context, page func() error) error { return s.inTurn(ctx, namespace, page) })
}

// inTurn calls read, which reads large objects, when no others are read: they may need most of the memory. Turns are shared
// between namespaces.
func (s *service) inTurn(ctx context.Context, namespace string, read func() error) error {
	if err := s.lists.Acquire(ctx, namespace); err != nil {
		return fmt.Errorf("wait for other reads: %w", err)
	}
	defer s.lists.Release(namespace)
	return read()
}
