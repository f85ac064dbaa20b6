// Package functionstest has fakes for the tests of functions: an API server, and a
// double of the AlterShield server. Unlike the generated clientset, the fake API server
// checks resourceVersion: a patch of a status without the current resourceVersion fails
// with a conflict.
package functionstest

import (
	"encoding/json"
	"maps"
	"strconv"
	"sync"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
)

// Cluster is a fake API server.
type Cluster struct {
	Change *fake.Clientset
	Kube   *kubefake.Clientset

	t        *testing.T
	mu       sync.Mutex
	version  int
	before   func()
	beforeIn int
	patches  int
	failWith error
}

// New returns an API server with the objects.
func New(t *testing.T, objects ...runtime.Object) *Cluster {
	c := &Cluster{Change: fake.NewSimpleClientset(), Kube: kubefake.NewClientset(), t: t, version: 1}
	for _, object := range objects {
		if err := c.Change.Tracker().Add(object); err != nil {
			t.Fatal(err)
		}
	}
	c.Change.PrependReactor("patch", "*", c.patch)
	c.Change.PrependReactor("list", "changepods", c.listChangePods)
	return c
}

// BeforePatch runs f once, before the nth patch from now is stored. If f changes the
// patched object with Write, the patch fails with a conflict.
func (c *Cluster) BeforePatch(n int, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before, c.beforeIn = f, n
}

// BeforeNextPatch runs f once, before the next patch is stored.
func (c *Cluster) BeforeNextPatch(f func()) { c.BeforePatch(1, f) }

// FailPatches makes all patches fail with err; nil makes them succeed again.
func (c *Cluster) FailPatches(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failWith = err
}

// Patches returns the number of stored patches.
func (c *Cluster) Patches() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.patches
}

// SentPatches returns the number of patch requests for a resource, with those that failed.
func (c *Cluster) SentPatches(plural string) int { return c.count("patch", plural) }

// Gets returns the number of get requests for a resource.
func (c *Cluster) Gets(plural string) int { return c.count("get", plural) }

// Lists returns the number of list requests for a resource.
func (c *Cluster) Lists(plural string) int { return c.count("list", plural) }

func (c *Cluster) count(verb, plural string) int {
	n := 0
	for _, action := range c.Change.Actions() {
		if action.Matches(verb, plural) {
			n++
		}
	}
	return n
}

// Configure creates the ConfigMap and the Secret of a server with this URL. With an
// empty URL no server is configured.
func (c *Cluster) Configure(url, token string) { c.ConfigureTokens(url, token, "") }

// ConfigureTokens is Configure with the previous token, which is still valid; empty means none.
func (c *Cluster) ConfigureTokens(url, token, previous string) {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: name}
	}
	objects := []runtime.Object{
		&corev1.Secret{ObjectMeta: meta(altershield.SecretName), Data: map[string][]byte{
			altershield.TokenKey: []byte(token), altershield.PreviousTokenKey: []byte(previous),
		}},
		&corev1.ConfigMap{ObjectMeta: meta(altershield.ConfigMapName), Data: map[string]string{
			"base-url": url, "platform": "breakwater", "tenant-code": "t", "change-scene-key": "s", "cluster-name": "c",
		}},
	}
	for _, object := range objects {
		if err := c.Kube.Tracker().Add(object); err != nil {
			c.t.Fatal(err)
		}
	}
}

// LimitRate sets the rate limit of the server and the total deadline of a call.
func (c *Cluster) LimitRate(t *testing.T, qps, burst, deadline string) {
	t.Helper()
	c.ConfigureServer(t, map[string]string{"qps": qps, "burst": burst, "total-deadline": deadline, "attempt-timeout": deadline})
}

// ConfigureServer sets keys of the ConfigMap of the server.
func (c *Cluster) ConfigureServer(t *testing.T, data map[string]string) {
	t.Helper()
	configs := c.Kube.CoreV1().ConfigMaps(v1alpha1.SystemNamespace)
	config, err := configs.Get(t.Context(), altershield.ConfigMapName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(config.Data, data)
	if _, err := configs.Update(t.Context(), config, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// ChangePod returns the stored object.
func (c *Cluster) ChangePod(name string) *v1alpha1.ChangePod {
	c.t.Helper()
	return stored[*v1alpha1.ChangePod](c, "changepods", name).DeepCopy()
}

// Copy returns a copy of the stored ChangePod as an event about it has it: after it was copied, since
// changes the stored object, and edit changes the copy. Both may be nil.
func (c *Cluster) Copy(name string, since, edit func(*v1alpha1.ChangePod)) *v1alpha1.ChangePod {
	c.t.Helper()
	batch := c.ChangePod(name)
	if since != nil {
		later := batch.DeepCopy()
		since(later)
		c.Write(later)
	}
	if edit != nil {
		edit(batch)
	}
	return batch
}

// ChangeWorkload returns the stored object.
func (c *Cluster) ChangeWorkload(name string) *v1alpha1.ChangeWorkload {
	c.t.Helper()
	return stored[*v1alpha1.ChangeWorkload](c, "changeworkloads", name).DeepCopy()
}

// stored reads from the tracker, because a function of BeforePatch must not use the
// client.
func stored[T runtime.Object](c *Cluster, plural, name string) T {
	c.t.Helper()
	object, err := c.Change.Tracker().Get(v1alpha1.SchemeGroupVersion.WithResource(plural), Namespace, name)
	if err != nil {
		c.t.Fatal(err)
	}
	return object.(T)
}

// Write stores the object as another client would.
func (c *Cluster) Write(object interface {
	runtime.Object
	metav1.Object
}) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	object.SetResourceVersion(strconv.Itoa(c.version))
	resource := v1alpha1.SchemeGroupVersion.WithResource("changepods")
	if _, ok := object.(*v1alpha1.ChangeWorkload); ok {
		resource.Resource = "changeworkloads"
	}
	if err := c.Change.Tracker().Update(resource, object, object.GetNamespace()); err != nil {
		c.t.Error(err)
	}
}

// patch applies a patch, and checks its resourceVersion.
func (c *Cluster) patch(action clienttesting.Action) (bool, runtime.Object, error) {
	c.mu.Lock()
	failure := c.failWith
	c.beforeIn--
	var before func()
	if c.beforeIn == 0 {
		before = c.before
	}
	c.mu.Unlock()
	if failure != nil {
		return true, nil, failure
	}
	if before != nil {
		before()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	patch := action.(clienttesting.PatchAction)
	if patch.GetSubresource() != "status" {
		c.t.Errorf("patch of %s %s is not a patch of its status", patch.GetResource().Resource, patch.GetName())
	}
	current, err := c.Change.Tracker().Get(patch.GetResource(), patch.GetNamespace(), patch.GetName())
	if err != nil {
		return true, nil, err
	}
	next, err := c.apply(current, patch)
	if err != nil {
		return true, nil, err
	}
	c.patches++
	return true, next, c.Change.Tracker().Update(patch.GetResource(), next, patch.GetNamespace())
}

func (c *Cluster) apply(current runtime.Object, patch clienttesting.PatchAction) (runtime.Object, error) {
	var expected struct {
		Metadata struct {
			ResourceVersion *string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(patch.GetPatch(), &expected); err != nil {
		return nil, err
	}
	version := current.(metav1.Object).GetResourceVersion()
	switch v := expected.Metadata.ResourceVersion; {
	case v == nil:
		c.t.Errorf("patch of %s has no resourceVersion: %s", patch.GetName(), patch.GetPatch())
	case *v != version:
		return nil, apierrors.NewConflict(patch.GetResource().GroupResource(), patch.GetName(), nil)
	}
	raw, err := json.Marshal(current)
	if err != nil {
		return nil, err
	}
	merged, err := jsonpatch.MergePatch(raw, patch.GetPatch())
	if err != nil {
		return nil, err
	}
	var next interface {
		runtime.Object
		metav1.Object
	} = &v1alpha1.ChangePod{}
	if _, ok := current.(*v1alpha1.ChangeWorkload); ok {
		next = &v1alpha1.ChangeWorkload{}
	}
	if err := json.Unmarshal(merged, next); err != nil {
		return nil, err
	}
	c.version++
	next.SetResourceVersion(strconv.Itoa(c.version))
	return next, nil
}

// listChangePods supports the selectable field of ChangePods.
func (c *Cluster) listChangePods(action clienttesting.Action) (bool, runtime.Object, error) {
	list := action.(clienttesting.ListAction)
	restrictions := list.GetListRestrictions()
	node, byNode := restrictions.Fields.RequiresExactMatch("status.changePodId")
	all, err := c.Change.Tracker().List(list.GetResource(), v1alpha1.SchemeGroupVersion.WithKind("ChangePod"), list.GetNamespace())
	if err != nil {
		return true, nil, err
	}
	out := &v1alpha1.ChangePodList{}
	for _, p := range all.(*v1alpha1.ChangePodList).Items {
		if restrictions.Labels.Matches(labelsOf(p)) && (!byNode || p.Status.ChangePodID == node) {
			out.Items = append(out.Items, p)
		}
	}
	return true, out, nil
}
