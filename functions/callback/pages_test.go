package callback

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
)

// pagesOf answers lists as the API server does: it ignores the limit for resourceVersion 0.
func pagesOf(batches []v1alpha1.ChangePod, served func(items int)) clienttesting.ReactionFunc {
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		options := action.(clienttesting.ListActionImpl).ListOptions
		from, to := 0, len(batches)
		if options.Continue != "" {
			from, _ = strconv.Atoi(options.Continue)
		}
		if options.Limit > 0 && options.ResourceVersion != "0" {
			to = min(to, from+int(options.Limit))
		}
		list := &v1alpha1.ChangePodList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: batches[from:to]}
		if to < len(batches) {
			list.Continue = strconv.Itoa(to)
		}
		served(to - from)
		return true, list, nil
	}
}

// pageOfTest is the maximum number of whole ChangePods in memory.
const pageOfTest = 500

func TestTheCacheListsBatchesInPages(t *testing.T) {
	batches := make([]v1alpha1.ChangePod, 2*pageOfTest+1)
	for i := range batches {
		batches[i] = v1alpha1.ChangePod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("b%d", i), UID: types.UID(strconv.Itoa(i))},
			Status:     v1alpha1.ChangePodStatus{ChangePodID: strconv.Itoa(i)},
		}
	}
	client, most := fake.NewSimpleClientset(), make(chan int, len(batches))
	client.PrependReactor("list", "changepods", pagesOf(batches, func(items int) { most <- items }))
	cached, err := NewBatches(client)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = cached.Run(t.Context()) }()
	if !cache.WaitForNamedCacheSyncWithContext(t.Context(), cached.HasSynced) {
		t.Fatal("the cache was not filled")
	}
	for i := range batches {
		if cached.ofNode(strconv.Itoa(i)) == nil {
			t.Fatalf("the cache has no batch %d", i)
		}
	}
	for range len(most) {
		if items := <-most; items > pageOfTest {
			t.Errorf("the API server answered with %d batches at once, want at most %d", items, pageOfTest)
		}
	}
}

func TestEachPageOfBatchesIsTrimmed(t *testing.T) {
	pages := 0
	all, err := listTrimmed(t.Context(), func(_ context.Context, options metav1.ListOptions) (*v1alpha1.ChangePodList, error) {
		pages++
		page := &v1alpha1.ChangePodList{Items: []v1alpha1.ChangePod{{
			ObjectMeta: metav1.ObjectMeta{Name: "b" + options.Continue, ManagedFields: []metav1.ManagedFieldsEntry{{}}},
			Spec:       v1alpha1.ChangePodSpec{PodInfos: make([]v1alpha1.PodSummary, 1000)},
		}}}
		if pages < 3 {
			page.Continue = strconv.Itoa(pages)
		}
		return page, nil
	})
	if err != nil || len(all.Items) != 3 || all.Continue != "" {
		t.Fatalf("%d batches, continue %q, %v", len(all.Items), all.Continue, err)
	}
	for _, batch := range all.Items {
		if len(batch.Spec.PodInfos)+len(batch.ManagedFields) > 0 {
			t.Errorf("batch %s is not trimmed", batch.Name)
		}
	}
}

func TestOnlyBatchesWithANodeAreListedAndWatched(t *testing.T) {
	client := fake.NewSimpleClientset()
	source := newListWatch(client)
	if _, err := source.List(metav1.ListOptions{}); err != nil { //nolint:staticcheck // the informer calls it, too
		t.Fatal(err)
	}
	w, err := source.Watch(metav1.ListOptions{}) //nolint:staticcheck // the informer calls it, too
	if err != nil {
		t.Fatal(err)
	}
	w.Stop()
	const want = "status.changePodId!="
	list := client.Actions()[0].(clienttesting.ListActionImpl).ListOptions.FieldSelector
	watched := client.Actions()[1].(clienttesting.WatchActionImpl).ListOptions.FieldSelector
	if list != want || watched != want {
		t.Errorf("listed %q, watched %q, want %q", list, watched, want)
	}
}

func TestAnExpiredPageIsAnErrorAfterWhichTheInformerListsAgain(t *testing.T) {
	_, err := listTrimmed(t.Context(), func(_ context.Context, options metav1.ListOptions) (*v1alpha1.ChangePodList, error) {
		if options.Continue != "" {
			return nil, apierrors.NewResourceExpired("the continue token is too old")
		}
		return &v1alpha1.ChangePodList{ListMeta: metav1.ListMeta{Continue: "1"}}, nil
	})
	if !apierrors.IsResourceExpired(err) {
		t.Errorf("got %v", err)
	}
}
