package budget

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// listedPods is more than the informer stores at once.
const listedPods = 3000

// podsAt returns a list whose first pod is the newest, and whose last is the oldest.
func podsAt(newest int) *corev1.PodList {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(newest + 1)}}
	for n := range listedPods {
		list.Items = append(list.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: fmt.Sprintf("web-%04d", n), UID: types.UID(strconv.Itoa(n)), ResourceVersion: strconv.Itoa(newest - n),
		}})
	}
	return list
}

// The cache is repaired by a list when a watch has expired. Its first pod may be the newest
// one, while the store still has others as they were before.
func TestTheResourceVersionOfTheCacheIsNeverAheadOfItsStore(t *testing.T) {
	const before, after = 10_000, 20_000
	var lists atomic.Int32
	expire := apiwatch.NewFake()
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			if lists.Add(1) == 1 {
				return podsAt(before), nil
			}
			return podsAt(after), nil
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			switch {
			case o.SendInitialEvents != nil:
				return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "", nil)
			case lists.Load() == 1:
				return expire, nil
			default:
				return apiwatch.NewFake(), nil
			}
		},
	}, &corev1.Pod{}, 0, nil)
	p := &podWatch{}
	if err := informer.SetTransform(p.before(trimPod)); err != nil {
		t.Fatal(err)
	}
	oldest := fmt.Sprintf("ns/web-%04d", listedPods-1)
	var handled, ahead atomic.Int32
	observe := func(obj any) {
		p.observe(obj)
		o, _, err := informer.GetStore().GetByKey(oldest)
		if err != nil {
			t.Error(err)
		}
		stored := 0
		if o != nil {
			stored, _ = strconv.Atoi(o.(*corev1.Pod).ResourceVersion) // a number of podsAt
		}
		if reached, _ := strconv.Atoi(p.resourceVersion()); stored < before-listedPods && reached > 0 || stored < after-listedPods && reached > before {
			ahead.Add(1)
		}
		handled.Add(1)
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: observe, UpdateFunc: func(_, obj any) { observe(obj) }, DeleteFunc: observe,
	}); err != nil {
		t.Fatal(err)
	}
	go informer.RunWithContext(t.Context())
	await := func(n int32) {
		t.Helper()
		if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			return handled.Load() >= n, nil
		}); err != nil {
			t.Fatalf("%d events", handled.Load())
		}
	}
	await(listedPods)
	if got := p.resourceVersion(); got != strconv.Itoa(before) {
		t.Errorf("after the first list: %s, want %d", got, before)
	}
	expire.Error(&apierrors.NewResourceExpired("too old").ErrStatus)
	await(2 * listedPods)
	if got := p.resourceVersion(); got != strconv.Itoa(after) {
		t.Errorf("after the second list: %s, want %d", got, after)
	}
	if n := ahead.Load(); n > 0 {
		t.Errorf("ahead of the store at %d of %d events", n, handled.Load())
	}
}
