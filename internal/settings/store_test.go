package settings

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clienttesting "k8s.io/client-go/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	"github.com/breakwater-dev/breakwater/client/informers/externalversions"
)

func TestAStoreFollowsItsObjects(t *testing.T) {
	ctx := t.Context()
	client := fake.NewSimpleClientset()
	factory := externalversions.NewSharedInformerFactory(client, 0)
	changed := make(chan struct{}, 10)
	store, err := NewStore(factory.App().V1alpha1().OpsConfigInfoes(), func() { changed <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	if !store.Get().Blocking {
		t.Error("the initial settings are not the defaults")
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	// The fake client loses events between the list and the watch.
	err = wait.PollUntilContextTimeout(ctx, time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		return slices.ContainsFunc(client.Actions(), func(a clienttesting.Action) bool { return a.GetVerb() == "watch" }), nil
	})
	if err != nil {
		t.Fatal("wait for the watch:", err)
	}

	configs := client.AppV1alpha1().OpsConfigInfoes(v1alpha1.SystemNamespace)
	c := &v1alpha1.OpsConfigInfo{
		ObjectMeta: metav1.ObjectMeta{Name: "blocking"},
		Spec:       v1alpha1.OpsConfigInfoSpec{Type: v1alpha1.ConfigBlocking},
	}
	if _, err := configs.Create(ctx, c, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	<-changed
	if store.Get().Blocking {
		t.Error("a created object is not effective")
	}
	c.Spec.Enable = true
	if _, err := configs.Update(ctx, c, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	<-changed
	if !store.Get().Blocking {
		t.Error("a changed object is not effective")
	}
	c.Spec.Enable = false
	if _, err := configs.Update(ctx, c, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	<-changed
	if err := configs.Delete(ctx, c.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	<-changed
	if !store.Get().Blocking {
		t.Error("a deleted object is effective")
	}
}
