package main

import (
	"bytes"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"knative.dev/eventing/pkg/apis/eventing/v1beta3"
	duckv1 "knative.dev/pkg/apis/duck/v1"
	"sigs.k8s.io/yaml"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
)

// The sources of events. A star stands for one or more parts of the path. A workload can be of
// any kind that is watched, and any protected object can be a denier. Knative's
// documentation uses braces, but its storage version returns them as %7B, so each
// `ko apply` would report a difference.
const (
	fromPod            = "/api/v1/namespaces/*/pods/*"
	fromWorkload       = "/apis/*/namespaces/*"
	fromChangePod      = "/apis/app.ops.cloud.alipay.com/v1alpha1/namespaces/*/changepods/*"
	fromDenier         = "/*"
	fromFlowControl    = "/apis/policy.kruise.io/v1alpha1/poddeletionflowcontrols/*"
	fromChangeWorkload = "/apis/app.ops.cloud.alipay.com/v1alpha1/namespaces/*/changeworkloads/*"
)

// entry has the columns of `kubectl get eventtypes` for a type.
type entry struct{ source, description string }

func entries() map[string]entry {
	return map[string]entry{
		events.TypePodFinished:              {fromWorkload, "A pod of a release is Ready. Subject: the pod."},
		events.TypeChangePodReady:           {fromChangePod, "A batch of pods needs a call to the change-control server, stage PRE or POST, or the verdict of another judge (extension judge). Subject: the ChangePod."},
		events.TypeChangePodVerdict:         {fromChangePod, "The change-control server or another judge (extension judge) judged a batch. Subject: the ChangePod."},
		events.TypeOrderReady:               {fromChangeWorkload, "The order of a release needs a call to the change-control server: Start, Finish or Close. Subject: the ChangeWorkload."},
		events.TypeOrderVerdict:             {fromChangeWorkload, "The change-control server judged a stage of the order of a release. Subject: the ChangeWorkload."},
		events.TypeChangeWorkloadStarted:    {fromChangeWorkload, "A release began to run, or ended before that. Subject: the workload."},
		events.TypeChangeWorkloadProgressed: {fromChangeWorkload, "The progress of a release, every 30 s, less often without progress, and when its state changes: pods preparing, checking, passed, failed. Subject: the workload."},
		events.TypeChangeWorkloadSucceeded:  {fromChangeWorkload, "All pods of a release passed. Subject: the workload."},
		events.TypeChangeWorkloadSuspended:  {fromChangeWorkload, "A release failed its check, or counts as failed. Its workload is suspended, unless isBlockingUp is off or shadow mode is on. Subject: the workload."},
		events.TypeChangeWorkloadFailed:     {fromChangeWorkload, "A release failed, and its workload was not suspended: the change-control server did not accept its order, a newer template replaced it, its rollout made no progress, or a check failed after a newer template was applied. Subject: the workload."},
		events.TypeChangeWorkloadRolledBack: {fromChangeWorkload, "A release was rolled back. Subject: the workload."},
		events.TypeChangeWorkloadBypassed:   {fromChangeWorkload, "A user's repair or rollback was admitted to a suspended workload. Subject: the workload."},
		events.TypeReleaseDenied:            {fromWorkload, "A release was denied, because its workload is suspended or its release check did not pass; or the deletion or a change of owner of a suspended workload was denied. Subject: the workload."},
		events.TypePermissionRequested:      {fromPod, "Permissions were requested for the address of a pod. Subject: the pod."},
		events.TypePermissionGranted:        {fromPod, "A permission set was granted to the address of a pod. Subject: the pod."},
		events.TypePermissionDenied:         {fromPod, "A provider denied a permission set to a pod. Subject: the pod."},
		events.TypePermissionRevoked:        {fromPod, "A pod ended, and needs no grant at its address any more; another pod of its node may keep one. Subject: the pod."},
		events.TypePermissionLeaked:         {fromPod, "A pod ended, and a grant of its address could not be revoked. Subject: the pod."},
		events.TypeBreakerOpened:            {fromPod, "The permissions of a pod were denied too often and are requested again only after a reset, or failed too often and are requested again after a pause. Subject: the pod."},
		events.TypeBreakerClosed:            {fromPod, "The breaker of a pod is closed: a person reset it, or all permissions of the pod are granted. Subject: the pod."},
		events.TypeDeletionDenied:           {fromDenier, "A PodUnavailableBudget, a PodDeletionFlowControl or a protection from cascading deletion denied deletions, evictions or in-place updates; at most one event a minute for each of these objects. Subject: the target of the request."},
		events.TypeDeletionFlowOpened:       {fromFlowControl, "A deletion limit was reached: the breaker of a PodDeletionFlowControl is open. Subject: the flow control."},
		events.TypeDeletionFlowClosed:       {fromFlowControl, "The breaker of a PodDeletionFlowControl is closed: deletions are below the limit again, or a person closed it. Subject: the flow control."},
	}
}

// eventType returns the manifest of a type, with the attributes that Knative's
// storage version returns, in its order.
func eventType(name string, e entry) *v1beta3.EventType {
	return &v1beta3.EventType{
		TypeMeta: metav1.TypeMeta{
			APIVersion: v1beta3.SchemeGroupVersion.String(),
			Kind:       "EventType",
		},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v1alpha1.SystemNamespace,
			Name:      name,
			Labels:    map[string]string{"app.kubernetes.io/part-of": "breakwater"},
		},
		Spec: v1beta3.EventTypeSpec{
			Description: e.description,
			Reference: &duckv1.KReference{
				APIVersion: "eventing.knative.dev/v1",
				Kind:       "Broker",
				Namespace:  v1alpha1.SystemNamespace,
				Name:       "default",
			},
			Attributes: []v1beta3.EventAttributeDefinition{
				{Name: "specversion", Required: true},
				{Name: "id", Required: true},
				{Name: "type", Required: true, Value: name},
				{Name: "source", Required: true, Value: e.source},
			},
		},
	}
}

// manifests returns the YAML of all types.
func manifests() ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("# The events of Breakwater, for `kubectl get eventtypes`. Nothing depends on\n" +
		"# these objects. Generated by events/eventtypegen: change it there.\n")
	all := entries()
	for _, name := range events.Types() {
		e, ok := all[name]
		if !ok {
			return nil, fmt.Errorf("event type %s: no entry", name)
		}
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(eventType(name, e))
		if err != nil {
			return nil, fmt.Errorf("event type %s: %w", name, err)
		}
		delete(object, "status")
		raw, err := yaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("event type %s: %w", name, err)
		}
		out.WriteString("---\n")
		out.Write(raw)
	}
	return out.Bytes(), nil
}
