package rollbackapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/jsonfields"
	"github.com/breakwater-dev/breakwater/internal/text"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// fieldManager owns the annotation.
const fieldManager = "breakwater-openapi"

// rollbackBody is the body of PUT /openapi/altershield/deployment/rollback.
type rollbackBody struct {
	Namespace      string `json:"namespace"`
	DeploymentName string `json:"deploymentName"`
	// Version is the version to roll back to; empty selects the newest good one.
	Version string `json:"version"`
	// Kind is Deployment, StatefulSet or DaemonSet; empty is Deployment.
	Kind string `json:"kind"`
	// Attempt is the attempt to roll back; 0 is the current one.
	Attempt int64 `json:"attempt"`
}

// rollbackAnswer is the request that is recorded, or would be without DryRun.
type rollbackAnswer struct {
	answer
	// FromVersion and Attempt are the current ones, ToVersion is the target.
	FromVersion string `json:"fromVersion"`
	Attempt     int64  `json:"attempt"`
	ToVersion   string `json:"toVersion"`
	DryRun      bool   `json:"dryRun"`
}

// rollback answers PUT /openapi/altershield/deployment/rollback.
func (s *service) rollback(c echo.Context) error {
	ctx := c.Request().Context()
	user, err := s.authenticate(c)
	if err != nil {
		return err
	}
	asked, kind, err := readBody(c)
	if err != nil {
		return err
	}
	if err := s.mayRollBack(ctx, user, kind, asked.Namespace, asked.DeploymentName); err != nil {
		return err
	}
	w, err := s.workload(ctx, kind, asked)
	if err != nil {
		return err
	}
	in, err := s.gather(ctx, w, asked)
	if err != nil {
		return err
	}
	d := Decide(in)
	if d.Problem != nil {
		return d.Problem
	}
	out := rollbackAnswer{FromVersion: in.Release.Version, Attempt: in.Release.Attempt, ToVersion: d.To, DryRun: dryRun(c)}
	subject := kind.LowerKind() + " " + asked.DeploymentName
	out.Message = recordedMessage(subject, d.To, in, out.DryRun)
	if d.Recorded {
		out.Message = fmt.Sprintf("%s already requested the same; %s", in.Pending.User, recordedMessage(subject, d.To, in, false))
		return c.JSON(http.StatusOK, out)
	}
	if err := s.record(ctx, user, w, in, d.To, out.DryRun); err != nil {
		return err
	}
	logging.FromContext(ctx).Infow("Rollback requested", "user", user.Username, "namespace", asked.Namespace, "kind", kind.Kind,
		"workload", asked.DeploymentName, "from", in.Release.Version, "attempt", in.Release.Attempt, "to", d.To, "dryRun", out.DryRun)
	return c.JSON(http.StatusOK, out)
}

// recordedMessage says what follows from the request.
func recordedMessage(subject, to string, in Input, dryRun bool) string {
	message := fmt.Sprintf("recorded: %s will be rolled back to version %s", subject, to)
	if dryRun {
		message = fmt.Sprintf("dry run: the request would be recorded; %s would be rolled back to version %s", subject, to)
	}
	if in.Paused {
		message += "; a user has paused it, so resume it then: " + resumeCommand(in)
	}
	return message
}

// readBody parses and validates the body.
func readBody(c echo.Context) (rollbackBody, workload.Kind, error) {
	var asked rollbackBody
	decoder := json.NewDecoder(c.Request().Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&asked); err != nil {
		return asked, workload.Kind{}, badBody(err)
	}
	kind, err := kindOf(asked.Kind)
	if err != nil {
		return asked, kind, err
	}
	if err := checkNamespace(asked.Namespace); err != nil {
		return asked, kind, err
	}
	if msgs := validation.IsDNS1123Subdomain(asked.DeploymentName); len(msgs) > 0 {
		return asked, kind, invalid("deploymentName", asked.DeploymentName, "write the name of the workload: "+msgs[0])
	}
	if asked.Version != "" && !v1alpha1.IsTemplateVersion(asked.Version) {
		return asked, kind, invalid("version", asked.Version, "write the 32 hexadecimal digits of a version, or leave it out")
	}
	if asked.Attempt < 0 {
		return asked, kind, invalid("attempt", strconv.FormatInt(asked.Attempt, 10), "write the attempt to roll back, or leave it out")
	}
	return asked, kind, nil
}

// workload reads the workload of a request in turn, and keeps the fields that gather and record read.
func (s *service) workload(ctx context.Context, kind workload.Kind, asked rollbackBody) (w *workload.Workload, err error) {
	err = s.inTurn(ctx, asked.Namespace, func() error {
		u, err := s.Dynamic.Resource(kind.GroupVersionResource()).Namespace(asked.Namespace).Get(ctx, asked.DeploymentName, metav1.GetOptions{})
		if apierrs.IsNotFound(err) {
			return problemf(http.StatusNotFound, "there is no %s %s in namespace %s", kind.LowerKind(), asked.DeploymentName, asked.Namespace)
		} else if err != nil {
			return fmt.Errorf("get %s %s/%s: %w", kind.Kind, asked.Namespace, asked.DeploymentName, err)
		}
		if w, err = workload.FromUnstructured(kind, u); err != nil {
			return err
		}
		w.Template, w.ManagedFields = corev1.PodTemplateSpec{}, nil
		maps.DeleteFunc(w.Labels, func(key, _ string) bool { return key != v1alpha1.SuspendLabel })
		return nil
	})
	return w, err
}

// gather reads the input of Decide.
func (s *service) gather(ctx context.Context, w *workload.Workload, asked rollbackBody) (Input, error) {
	ns, err := s.Kube.CoreV1().Namespaces().Get(ctx, asked.Namespace, metav1.GetOptions{})
	if err != nil {
		return Input{}, fmt.Errorf("get namespace %s: %w", asked.Namespace, err)
	}
	g, err := s.readVersions(ctx, w)
	if err != nil {
		return Input{}, err
	}
	return Input{
		Kind: g.Kind, Name: g.Name,
		OptedIn: v1alpha1.OptedIn(ns), Known: g.known, Release: g.release,
		Deleting:  g.DeletionTimestamp != nil,
		Paused:    g.Kind.GroupKind() == workload.Deployment.GroupKind() && pausedByPerson(g.Workload),
		Suspended: v1alpha1.SuspensionOf(g.Labels) != "",
		Succeeded: g.succeeded, Failed: g.failed,
		Version: asked.Version, Attempt: asked.Attempt,
		Pending: v1alpha1.RollbackRequestOf(g.Annotations),
	}, nil
}

// pausedByPerson reports whether a person paused the rollout, maybe before Breakwater held it: a hold then changed
// nothing.
func pausedByPerson(w *workload.Workload) bool {
	hold := v1alpha1.HoldOf(w.Annotations)
	return w.PausedOrHeld() && (hold == nil || w.Kind.HoldChangedNothing(hold.Former))
}

// record writes the request on the workload, unless its release or its recorded request has changed
// since the decision.
func (s *service) record(ctx context.Context, user authenticationv1.UserInfo, w *workload.Workload, in Input, to string, dryRun bool) error {
	request, err := json.Marshal(v1alpha1.RollbackRequest{
		User: user.Username, Time: metav1.NewTime(s.Clock.Now()), Attempt: in.Release.Attempt, Version: to,
	})
	if err != nil {
		return fmt.Errorf("record a rollback: %w", err)
	}
	path := workload.Annotation(v1alpha1.RollbackRequestAnnotation)
	var recorded any = json.RawMessage("null") // tests that there is none
	if raw, found := w.Annotations[v1alpha1.RollbackRequestAnnotation]; found {
		recorded = raw
	}
	body, err := json.Marshal(append(workload.UnchangedOperations(w.UID, in.Release),
		workload.Operation{Op: "test", Path: path, Value: recorded},
		workload.Operation{Op: "add", Path: path, Value: string(request)}))
	if err != nil {
		return fmt.Errorf("record a rollback: %w", err)
	}
	options := metav1.PatchOptions{FieldManager: fieldManager}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	_, err = s.Dynamic.Resource(w.Kind.GroupVersionResource()).Namespace(w.Namespace).Patch(ctx, w.Name, types.JSONPatchType, body, options)
	switch {
	case apierrs.IsInvalid(err): // a test of the patch failed, or a policy denied it with the same status
		return problemf(http.StatusConflict, "%s %s has changed since attempt %d was read, or a policy denies the annotation: check the workload and repeat the request: %s",
			w.Kind.LowerKind(), w.Name, in.Release.Attempt, err)
	case apierrs.IsConflict(err), apierrs.IsNotFound(err):
		return problemf(http.StatusConflict, "%s %s has changed since attempt %d was read: check the workload and repeat the request",
			w.Kind.LowerKind(), w.Name, in.Release.Attempt)
	case apierrs.IsForbidden(err):
		return problemf(http.StatusConflict, "the cluster denies the annotation on %s %s: %s", w.Kind.LowerKind(), w.Name, err)
	case err != nil:
		return fmt.Errorf("record rollback of %s %s/%s: %w", w.Kind.Kind, w.Namespace, w.Name, err)
	}
	return nil
}

// dryRun reports whether the request is a dry run.
func dryRun(c echo.Context) bool {
	switch c.QueryParam("dryRun") {
	case "", "false", "0":
		return false
	default:
		return true
	}
}

// maxField bounds the name of a field that an answer quotes, in bytes.
const maxField = 253

// badBody returns the error of a body that is too long or malformed, or has an unknown field.
func badBody(err error) error {
	if limit, ok := errors.AsType[*echo.HTTPError](err); ok {
		return limit
	}
	if field, unknown := jsonfields.Unknown(err); unknown {
		field = text.Truncate(field, maxField)
		return &problem{status: http.StatusUnprocessableEntity, field: field,
			message: field + " is not a field of the body; send only namespace, deploymentName, version, kind and attempt (a dry run is ?dryRun=true)"}
	}
	return problemf(http.StatusBadRequest, `the body is malformed (%s): send {"namespace":"...","deploymentName":"..."}`, err)
}
