package controlplane

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// WatchAvailable follows the pods of web in a namespace, of which count are available now. The
// result ends the watch and returns the lowest number of available pods. A watch sees every
// state of every pod in the order of the writes. If it ended before, that is an error.
func WatchAvailable(ctx context.Context, kube kubernetes.Interface, namespace string, count int) (lowest func() (int, error), err error) {
	pods := kube.CoreV1().Pods(namespace)
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		return nil, err
	}
	available := map[types.UID]bool{}
	note := func(p *corev1.Pod, exists bool) {
		if exists && p.DeletionTimestamp == nil && workload.PodReady(p) {
			available[p.UID] = true
		} else {
			delete(available, p.UID)
		}
	}
	for i := range list.Items {
		note(&list.Items[i], true)
	}
	if len(available) != count {
		return nil, fmt.Errorf("%d pods are available, want %d", len(available), count)
	}
	events, err := pods.Watch(ctx, metav1.ListOptions{LabelSelector: "app=web", ResourceVersion: list.ResourceVersion})
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	least := len(available)
	var failed error
	go func() {
		defer close(ended)
		for e := range events.ResultChan() {
			if e.Type == watch.Error {
				failed = apierrors.FromObject(e.Object)
				return
			}
			if p, ok := e.Object.(*corev1.Pod); ok {
				note(p, e.Type != watch.Deleted)
				least = min(least, len(available))
			}
		}
		failed = errors.New("closed")
	}()
	return func() (int, error) {
		select {
		case <-ended:
			return 0, fmt.Errorf("the watch of the pods ended early: %w", failed)
		default:
		}
		events.Stop()
		<-ended // an error now is that of Stop
		return least, nil
	}, nil
}
