package rollbackapi

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/pagedlist"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// suspendedAnswer lists the suspended workloads.
type suspendedAnswer struct {
	answer
	Deployments []suspendedWorkload `json:"deployments"`
}

// suspendedWorkload is a suspended workload. For a StatefulSet or DaemonSet the
// ReplicaSet fields have names of ControllerRevisions.
type suspendedWorkload struct {
	DeploymentName string `json:"deploymentName"`
	Namespace      string `json:"namespace"`
	// NowReplicaSet is the ReplicaSet of the current template; empty until the
	// controller creates it.
	NowReplicaSet string `json:"nowReplicaSet"`
	// HasSuccessVersion means that a rollback is possible.
	HasSuccessVersion bool `json:"hasSuccessVersion"`
	// SuccessReplicaSet is the ReplicaSet of that version; empty if the controller
	// deleted it. A rollback is possible nevertheless.
	SuccessReplicaSet string `json:"successReplicaSet"`
	SuccessVersion    string `json:"successVersion"`
}

// suspended answers GET /openapi/altershield/suspend/deployment. Without a
// namespace it lists all namespaces, if the user may.
func (s *service) suspended(c echo.Context) error {
	ctx := c.Request().Context()
	user, err := s.authenticate(c)
	if err != nil {
		return err
	}
	kind, err := kindOf(c.QueryParam("kind"))
	if err != nil {
		return err
	}
	namespace := c.QueryParam("namespace")
	if namespace != "" {
		if err := checkNamespace(namespace); err != nil {
			return err
		}
	}
	if err := s.mayList(ctx, user, kind, namespace); err != nil {
		return err
	}
	if err := s.suspendedLists.Acquire(ctx, namespace); err != nil {
		return fmt.Errorf("wait for other lists: %w", err)
	}
	defer s.suspendedLists.Release(namespace)
	var out suspendedAnswer
	listed, err := s.listSuspended(ctx, kind, namespace)
	if err != nil {
		return err
	}
	if out.Deployments, err = s.describeAll(ctx, listed); err != nil {
		return err
	}
	out.Message = fmt.Sprintf("%d suspended", len(out.Deployments))
	return c.JSON(http.StatusOK, out)
}

// selectable is a workload and the selector of its pods.
type selectable struct {
	*workload.Workload
	selector *metav1.LabelSelector
}

// maxListed is the size in bytes of all selectors and annotations of a list: users choose it.
const maxListed = 1 << 20

// listSuspended lists the suspended workloads of a namespace, or of all, with the fields that describe reads.
func (s *service) listSuspended(ctx context.Context, kind workload.Kind, namespace string) (all []selectable, err error) {
	size := 0
	options := metav1.ListOptions{LabelSelector: v1alpha1.SuspendLabel, Limit: savedtemplate.UnstructuredPerPage}
	list := s.Dynamic.Resource(kind.GroupVersionResource()).Namespace(namespace).List
	err = pagedlist.Each(s.pagesInTurn(ctx, namespace), list, options, func(u *unstructured.Unstructured) error {
		selector, err := workload.PodSelector(u.Object)
		if err != nil {
			return fmt.Errorf("selector of %s %s/%s: %w", kind.Kind, u.GetNamespace(), u.GetName(), err)
		}
		annotations := u.GetAnnotations()
		version, attempt := annotations[v1alpha1.VersionKey], annotations[v1alpha1.AttemptAnnotation]
		if size += selector.Size() + len(version) + len(attempt); size > maxListed {
			fix := "select a namespace: ?namespace="
			if namespace != "" {
				fix = "create them again with shorter selectors"
			}
			return problemf(http.StatusUnprocessableEntity, "the selectors and annotations of the suspended %s have more than %d MiB: %s", kind.Resource, maxListed>>20, fix)
		}
		all = append(all, selectable{selector: selector, Workload: &workload.Workload{Kind: kind, ObjectMeta: metav1.ObjectMeta{
			Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), Annotations: map[string]string{
				v1alpha1.VersionKey: version, v1alpha1.AttemptAnnotation: attempt}}}})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", kind.Resource, err)
	}
	return all, nil
}

// describeAll describes workloads, at most parallel at a time: each takes three lists, two of which wait for their turn.
func (s *service) describeAll(ctx context.Context, workloads []selectable) ([]suspendedWorkload, error) {
	out := make([]suspendedWorkload, len(workloads))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, w := range workloads {
		group.Go(func() (err error) {
			defer func() {
				if p := recover(); p != nil { // echo recovers only in the goroutine of the request
					err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
				}
			}()
			out[i], err = s.describe(groupCtx, w)
			return err
		})
	}
	return out, group.Wait()
}

func (s *service) describe(ctx context.Context, w selectable) (suspendedWorkload, error) {
	g, err := s.readVersions(ctx, w.Workload)
	if err != nil {
		return suspendedWorkload{}, err
	}
	templates, err := s.templates(ctx, w)
	if err != nil {
		return suspendedWorkload{}, err
	}
	out := suspendedWorkload{DeploymentName: g.Name, Namespace: g.Namespace}
	if now, ok := savedtemplate.Latest(templates, g.release.Version); ok {
		out.NowReplicaSet = now.Name
	}
	if k, ok := g.newest(); ok {
		out.HasSuccessVersion, out.SuccessVersion = true, k.Release.Version
		if good, ok := savedtemplate.Latest(templates, k.Release.Version); ok {
			out.SuccessReplicaSet = good.Name
		}
	}
	return out, nil
}
