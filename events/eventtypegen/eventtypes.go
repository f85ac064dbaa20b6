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

// Where events come from. The stars stand for any namespace and name: the
// braces that Knative's documentation uses for that come back from its storage
// version as %7B, and each `ko apply` would then see a difference.
const (
	fromPod            = "/api/v1/namespaces/*/pods/*"
	fromWorkload       = "/apis/apps/v1/namespaces/*/deployments/*"
	fromChangePod      = "/apis/app.ops.cloud.alipay.com/v1alpha1/namespaces/*/changepods/*"
	fromGuard          = "/apis/policy.kruise.io/v1alpha1/namespaces/*/podunavailablebudgets/*"
	fromFlowControl    = "/apis/policy.kruise.io/v1alpha1/poddeletionflowcontrols/*"
	fromChangeWorkload = "/apis/app.ops.cloud.alipay.com/v1alpha1/namespaces/*/changeworkloads/*"
)

// entry is what `kubectl get eventtypes` shows of a type.
type entry struct{ source, description string }

func entries() map[string]entry {
	return map[string]entry{
		events.TypePodFinished:              {fromWorkload, "A pod of a release is Ready. Subject: the pod."},
		events.TypeChangePodReady:           {fromChangePod, "A batch of pods waits for a call to the change-control server, stage PRE or POST. Subject: the ChangePod."},
		events.TypeChangePodVerdict:         {fromChangePod, "The change-control server judged a stage of a batch. Subject: the ChangePod."},
		events.TypeOrderReady:               {fromChangeWorkload, "The order of a release waits for a call to the change-control server: Start, Finish or Close. Subject: the ChangeWorkload."},
		events.TypeOrderVerdict:             {fromChangeWorkload, "The change-control server judged a stage of the order of a release. Subject: the ChangeWorkload."},
		events.TypeChangeWorkloadStarted:    {fromChangeWorkload, "A release began to be judged. Subject: the workload."},
		events.TypeChangeWorkloadProgressed: {fromChangeWorkload, "How far a release is, every 30 s and when its state changes: pods preparing, checking, passed, failed. Subject: the workload."},
		events.TypeChangeWorkloadSucceeded:  {fromChangeWorkload, "All pods of a release passed. Subject: the workload."},
		events.TypeChangeWorkloadSuspended:  {fromChangeWorkload, "A release was suspended because a check failed. Subject: the workload."},
		events.TypeChangeWorkloadFailed:     {fromChangeWorkload, "The change-control server did not take a release: it is not judged. Subject: the workload."},
		events.TypeChangeWorkloadRolledBack: {fromChangeWorkload, "A release was rolled back. Subject: the workload."},
		events.TypeChangeWorkloadBypassed:   {fromChangeWorkload, "A user's repair or rollback was admitted to a suspended workload. Subject: the workload."},
		events.TypeReleaseDenied:            {fromWorkload, "A release was refused: its workload is suspended, or its check did not pass. Subject: the workload."},
		events.TypePermissionRequested:      {fromPod, "Permissions were asked for, for the address of a pod. Subject: the pod."},
		events.TypePermissionGranted:        {fromPod, "A permission set was granted to the address of a pod. Subject: the pod."},
		events.TypePermissionDenied:         {fromPod, "A permission set was denied to a pod. Subject: the pod."},
		events.TypePermissionRevoked:        {fromPod, "A pod ended, and what was granted to its address was taken back. Subject: the pod."},
		events.TypePermissionLeaked:         {fromPod, "A pod ended, and something that was granted to its address could not be taken back. Subject: the pod."},
		events.TypeBreakerOpened:            {fromPod, "The permissions of a pod were denied or failed too often: they are not asked for any more. Subject: the pod."},
		events.TypeBreakerClosed:            {fromPod, "The permissions of a pod are asked for again. Subject: the pod."},
		events.TypeDeletionDenied:           {fromGuard, "Deletions, evictions or changes in place were refused by a PodUnavailableBudget, a PodDeletionFlowControl or a protection from cascading deletion; at most one a minute. Subject: what was to go."},
		events.TypeDeletionFlowOpened:       {fromFlowControl, "A limit of deletions is hit: the breaker of a PodDeletionFlowControl is open. Subject: the flow control."},
		events.TypeDeletionFlowClosed:       {fromFlowControl, "There is room again: the breaker of a PodDeletionFlowControl is closed. Subject: the flow control."},
	}
}

// eventType returns the manifest of a type. Its attributes are those, in that
// order, which Knative's storage version gives back.
func eventType(name string, e entry) *v1beta3.EventType {
	return &v1beta3.EventType{
		TypeMeta: metav1.TypeMeta{
			APIVersion: v1beta3.SchemeGroupVersion.String(),
			Kind:       "EventType",
		},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v1alpha1.SystemNamespace,
			Name:      name,
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
	out.WriteString("# The events of the change defence, for `kubectl get eventtypes`; nothing depends\n" +
		"# on these objects. Generated by events/eventtypegen: change it there.\n")
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
