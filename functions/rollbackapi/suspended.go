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
	out := suspendedAnswer{Deployments: []suspendedWorkload{}}
	page := metav1.ListOptions{LabelSelector: v1alpha1.SuspendLabel, Limit: pageSize}
	for {
		list, err := s.Dynamic.Resource(kind.GroupVersionResource()).Namespace(namespace).List(ctx, page)
		if err != nil {
			return fmt.Errorf("list %s: %w", kind.Resource, err)
		}
		described, err := s.describeAll(ctx, kind, list.Items)
		if err != nil {
			return err
		}
		out.Deployments = append(out.Deployments, described...)
		if page.Continue = list.GetContinue(); page.Continue == "" {
			break
		}
	}
	out.Message = fmt.Sprintf("%d suspended", len(out.Deployments))
	return c.JSON(http.StatusOK, out)
}

// describeAll describes workloads, at most parallel at a time: each takes three lists.
func (s *service) describeAll(ctx context.Context, kind workload.Kind, workloads []unstructured.Unstructured) ([]suspendedWorkload, error) {
	out := make([]suspendedWorkload, len(workloads))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range workloads {
		group.Go(func() (err error) {
			defer func() {
				if p := recover(); p != nil { // echo recovers only in the goroutine of the request
					err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
				}
			}()
			out[i], err = s.describe(groupCtx, kind, &workloads[i])
			return err
		})
	}
	return out, group.Wait()
}

func (s *service) describe(ctx context.Context, kind workload.Kind, u *unstructured.Unstructured) (suspendedWorkload, error) {
	g, err := s.readVersions(ctx, kind, u)
	if err != nil {
		return suspendedWorkload{}, err
	}
	templates, err := s.templates(ctx, g.Workload, u)
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
