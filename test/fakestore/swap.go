// Package fakestore adds optimistic locking of the API server to the fake clients of
// client-go.
package fakestore

import (
	"errors"
	"fmt"
	"strconv"
	"sync"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// Client is a fake clientset.
type Client interface {
	PrependReactor(verb, resource string, reaction clienttesting.ReactionFunc)
	Tracker() clienttesting.ObjectTracker
}

// CompareAndSwap makes the client reject an update whose resourceVersion differs from
// the stored one. The resourceVersions must be numbers.
func CompareAndSwap(client Client, resource string) {
	var mu sync.Mutex
	client.PrependReactor("update", resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		next := a.(clienttesting.UpdateAction).GetObject().DeepCopyObject()
		to, err := meta.Accessor(next)
		if err != nil {
			return true, nil, fmt.Errorf("read the metadata of the update: %w", err)
		}
		stored, err := client.Tracker().Get(a.GetResource(), a.GetNamespace(), to.GetName())
		if err != nil {
			return true, nil, err
		}
		from, err := meta.Accessor(stored)
		if err != nil {
			return true, nil, fmt.Errorf("read the metadata of the stored object: %w", err)
		}
		if from.GetResourceVersion() != to.GetResourceVersion() {
			return true, nil, apierrs.NewConflict(a.GetResource().GroupResource(), to.GetName(), errors.New("changed"))
		}
		version, err := strconv.Atoi(from.GetResourceVersion())
		if err != nil {
			return true, nil, fmt.Errorf("parse resourceVersion %q: %w", from.GetResourceVersion(), err)
		}
		to.SetResourceVersion(strconv.Itoa(version + 1))
		return true, next, client.Tracker().Update(a.GetResource(), next, a.GetNamespace())
	})
}
