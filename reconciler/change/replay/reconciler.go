// Package replay sends undelivered CloudEvents again on request of a person (events/replay).
//
// The request is an annotation of the workload with names of Kubernetes Events. Each of them
// stores an event, which is sent if the controller signed it and it is about this workload. The
// Kubernetes Event is then marked as replayed, and at the end the request is removed. While the
// Broker does not accept an event, the request stays.
package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/delivery"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer"
)

// fieldManager owns what this binary writes.
const fieldManager = "controller"

// Sender sends an event once; *delivery.Sender implements it.
type Sender interface {
	Deliver(ctx context.Context, e cloudevents.Event) error
}

// Reconciler executes the replay requests of workloads.
type Reconciler struct {
	reconciler.LeaderAwareFuncs

	kube      kubernetes.Interface
	dynamic   dynamic.Interface
	workloads *workloadinformer.Watch
	// requested reports whether a workload has a request and its namespace is opted in.
	requested func(obj any) bool
	sender    Sender
	verifier  Verifier
	recorder  record.EventRecorder
	clock     clock.PassiveClock
}

var (
	_ controller.Reconciler  = (*Reconciler)(nil)
	_ reconciler.LeaderAware = (*Reconciler)(nil)
)

// Reconcile executes the request of one workload.
func (r *Reconciler) Reconcile(ctx context.Context, key string) error {
	w, err := r.workloads.Leading(r.IsLeaderFor, key)
	if err != nil || w == nil || !r.requested(w) {
		return err
	}
	for _, event := range v1alpha1.ReplayRequestOf(w.Annotations) {
		if err := r.replay(ctx, w, event); err != nil {
			return err
		}
	}
	return r.removeRequest(ctx, w)
}

// replay sends the event that a Kubernetes Event stores, and marks it.
func (r *Reconciler) replay(ctx context.Context, w *workload.Workload, name string) error {
	if len(rest.IsValidPathSegmentName(name)) > 0 { // the client would not send it
		r.dropped(w, name, "this is not the name of a Kubernetes Event; write it without its namespace")
		return nil
	}
	k, err := r.letter(ctx, w.Namespace, name)
	if err != nil {
		return err
	}
	about := events.Workload{APIVersion: w.Kind.GroupVersion().String(), Kind: w.Kind.Kind, Name: w.Name}
	d, err := Decide(ctx, k, w.Namespace, about, r.verifier)
	if err != nil {
		return err
	}
	if d.Action == Send {
		err := r.sender.Deliver(ctx, d.Event)
		if status, ok := errors.AsType[*delivery.StatusError](err); ok && status.Permanent() {
			d = Decision{Action: Drop, Message: err.Error()}
		} else if err != nil {
			return fmt.Errorf("replay the event of Kubernetes Event %s/%s: %w", w.Namespace, name, err)
		}
	}
	switch d.Action {
	case Send:
		logging.FromContext(ctx).Infow("Replayed an event", "type", d.Event.Type(), "id", d.Event.ID())
		r.recorder.Eventf(w.Reference(), corev1.EventTypeNormal, v1alpha1.ReasonEventReplayed, "sent event %s of Kubernetes Event %s again", d.Event.Type(), name)
		return r.mark(ctx, k)
	case Drop:
		r.dropped(w, name, d.Message)
	}
	return nil
}

// dropped reports why the event of a Kubernetes Event is not sent.
func (r *Reconciler) dropped(w *workload.Workload, name, why string) {
	r.recorder.Eventf(w.Reference(), corev1.EventTypeWarning, v1alpha1.ReasonReplayDropped, "did not replay Kubernetes Event %q: %s", name, why)
}

// letter returns a Kubernetes Event, or nil if none has this name.
func (r *Reconciler) letter(ctx context.Context, namespace, name string) (*corev1.Event, error) {
	k, err := r.kube.CoreV1().Events(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrs.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read Kubernetes Event %s/%s: %w", namespace, name, err)
	}
	return k, nil
}

// mark records the replay on the Kubernetes Event.
func (r *Reconciler) mark(ctx context.Context, k *corev1.Event) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         k.UID,
		"annotations": map[string]string{v1alpha1.ReplayedAnnotation: r.clock.Now().UTC().Format(time.RFC3339)},
	}})
	if err != nil {
		return fmt.Errorf("encode the mark of Kubernetes Event %s: %w", k.Name, err)
	}
	_, err = r.kube.CoreV1().Events(k.Namespace).Patch(ctx, k.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if apierrs.IsNotFound(err) || apierrs.IsConflict(err) {
		return nil // it expired
	} else if err != nil {
		return fmt.Errorf("mark Kubernetes Event %s/%s: %w", k.Namespace, k.Name, err)
	}
	return nil
}

// removeRequest removes the request, unless it was replaced by another one.
func (r *Reconciler) removeRequest(ctx context.Context, w *workload.Workload) error {
	path := workload.Annotation(v1alpha1.ReplayRequestAnnotation)
	body, err := json.Marshal([]workload.Operation{
		{Op: "test", Path: workload.Pointer("metadata", "uid"), Value: w.UID},
		{Op: "test", Path: path, Value: w.Annotations[v1alpha1.ReplayRequestAnnotation]},
		{Op: "remove", Path: path},
	})
	if err != nil {
		return fmt.Errorf("encode the removal of a replay request: %w", err)
	}
	workloads := r.dynamic.Resource(w.Kind.GroupVersionResource()).Namespace(w.Namespace)
	_, err = workloads.Patch(ctx, w.Name, types.JSONPatchType, body, metav1.PatchOptions{FieldManager: fieldManager})
	if apierrs.IsInvalid(err) {
		// A test of the patch failed, or a policy denies the write, which is then tried again with backoff.
		current, readErr := workloads.Get(ctx, w.Name, metav1.GetOptions{})
		switch {
		case readErr != nil:
			err = readErr
		case current.GetUID() != w.UID || current.GetAnnotations()[v1alpha1.ReplayRequestAnnotation] != w.Annotations[v1alpha1.ReplayRequestAnnotation]:
			return nil // the event of the newer workload reconciles again
		}
	}
	if apierrs.IsConflict(err) || apierrs.IsNotFound(err) {
		return nil // the event of the newer workload reconciles again
	} else if err != nil {
		return fmt.Errorf("remove the replay request of %s %s/%s: %w", w.Kind.Kind, w.Namespace, w.Name, err)
	}
	return nil
}
