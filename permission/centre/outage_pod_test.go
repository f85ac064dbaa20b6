package centre

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/permission/api"
	initclient "github.com/breakwater-dev/breakwater/permission/initaction/client"
	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

// outagePod is a pod whose init container is run by a kubelet.
type outagePod struct {
	w       *outageFixture
	n       int
	mu      sync.Mutex
	started int
}

func (p *outagePod) name() string { return fmt.Sprintf("web-%d", p.n) }

// request is the request of the init-action-server for the pod.
func (p *outagePod) request() api.ApplicationRequest {
	return api.ApplicationRequest{Cluster: "c1", PodUID: "uid-" + p.name(), PodIPs: []string{p.ip()}, Set: "web"}
}

func (p *outagePod) ip() string { return fmt.Sprintf("10.0.0.%d", p.n+1) }

// startPod creates pod n.
func (w *outageFixture) startPod(n int) *outagePod {
	p := &outagePod{w: w, n: n}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: p.name(), UID: types.UID("uid-" + p.name()), Finalizers: []string{podmeta.Finalizer},
			Labels: map[string]string{podmeta.Label: podmeta.LabelRequired}},
		Spec: corev1.PodSpec{NodeName: "node", InitContainers: []corev1.Container{{Name: protocol.ContainerName,
			Env: []corev1.EnvVar{{Name: protocol.EnvSets, Value: "web"}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, PodIPs: []corev1.PodIP{{IP: p.ip()}}},
	}
	if err := errors.Join(w.kube.Tracker().Add(pod), w.podCache.Add(pod)); err != nil {
		w.t.Error(err)
	}
	p.restart()
	return p
}

// restart runs the init container, again and again with the backoff of a kubelet,
// until it exits with 0. Then the app starts.
func (p *outagePod) restart() {
	config := initclient.Config{URL: "http://init" + protocol.AuthorizePath, Sets: []string{"web"}, TokenFile: p.w.writeFile(p.name(), p.name()), Deadline: initclient.DefaultDeadline}
	p.w.running.Go(func() {
		for backoff := 10 * time.Second; p.w.ctx.Err() == nil; backoff = min(2*backoff, 5*time.Minute) {
			c := initclient.New(config, io.Discard)
			c.HTTP = p.w.toInit.Client(p.ip())
			if result := c.Run(p.w.ctx); result.Code == protocol.ExitGranted {
				if grants := p.w.double.Stats().OfPod("uid-" + p.name()); len(grants) != 1 || grants[0].IP != p.ip() {
					p.w.t.Errorf("pod %d starts its app with %+v", p.n, grants)
				}
				p.mu.Lock()
				p.started++
				p.mu.Unlock()
				return
			}
			select {
			case <-time.After(backoff):
			case <-p.w.ctx.Done():
			}
		}
	})
}

// starts is how often the app was started.
func (p *outagePod) starts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.started
}

// condition is the condition of the pod at the API server.
func (p *outagePod) condition() corev1.PodCondition {
	pod, err := p.w.kube.CoreV1().Pods("shop").Get(p.w.t.Context(), p.name(), metav1.GetOptions{})
	if err != nil {
		p.w.t.Error(err)
		return corev1.PodCondition{}
	}
	return *cmp.Or(podmeta.Condition(pod, podmeta.ConditionAuthorized), &corev1.PodCondition{})
}
