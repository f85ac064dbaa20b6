package budget

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	policyclient "github.com/breakwater-dev/breakwater/client/clientset/versioned/typed/policy/v1alpha1"
)

// modelAPI is a model of the API server. It stores the pods and budgets of one
// namespace, and writes budgets by compare-and-swap. A call waits until the model
// serves it. Only the goroutine of the model changes what is stored, while all other
// goroutines wait.
type modelAPI struct {
	revision int64
	pods     map[string]*corev1.Pod
	budgets  map[string]*v1alpha1.PodUnavailableBudget
	// podEvents and budgetEvents are the watch events so far.
	podEvents    []watchEvent[*corev1.Pod]
	budgetEvents []watchEvent[*v1alpha1.PodUnavailableBudget]

	mu     sync.Mutex
	closed bool
	calls  []*apiCall
}

// watchEvent is a change of an object, which is its last state if it is deleted.
type watchEvent[O any] struct {
	revision int64
	object   O
	deleted  bool
}

// apiCall is a call that waits to be served.
type apiCall struct {
	from  *process
	what  string
	serve func() (any, error)
	reply chan apiReply
	// abandoned says that the caller does not wait anymore. The call may still be
	// served.
	abandoned bool
}

type apiReply struct {
	value any
	err   error
}

// process is a client of the API server.
type process struct {
	api  *modelAPI
	name string
	dead bool
}

func newModelAPI() *modelAPI {
	return &modelAPI{revision: 100, pods: map[string]*corev1.Pod{}, budgets: map[string]*v1alpha1.PodUnavailableBudget{}}
}

var errDead = apierrs.NewNotFound(v1alpha1.Resource("podunavailablebudgets"), "process")

// call waits until the model serves a call, or the context ends.
func call[O any](ctx context.Context, p *process, what string, serve func() (O, error)) (O, error) {
	c := &apiCall{from: p, what: p.name + " " + what, serve: func() (any, error) { return serve() }, reply: make(chan apiReply, 1)}
	var none O
	p.api.mu.Lock()
	dead := p.dead || p.api.closed
	if !dead {
		p.api.calls = append(p.api.calls, c)
	}
	p.api.mu.Unlock()
	if dead {
		return none, errDead
	}
	select {
	case r := <-c.reply:
		if r.err != nil {
			return none, r.err
		}
		return r.value.(O), nil
	case <-ctx.Done():
		p.api.mu.Lock()
		defer p.api.mu.Unlock()
		c.abandoned = true
		return none, ctx.Err()
	}
}

// waiting returns the calls that wait, in an order that does not depend on the
// scheduler.
func (a *modelAPI) waiting() []*apiCall {
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.SortStableFunc(a.calls, func(x, y *apiCall) int { return cmp.Compare(x.what, y.what) })
	return slices.Clone(a.calls)
}

// fate is what happens to a call.
type fate string

const (
	fateServed fate = "served"
	fateFailed fate = "not served, an error"
	fateLost   fate = "served, the reply is lost"
)

var errLost = apierrs.NewInternalError(errors.New("the connection was closed"))

// end ends a call.
func (a *modelAPI) end(c *apiCall, f fate) {
	a.mu.Lock()
	a.calls = slices.DeleteFunc(a.calls, func(o *apiCall) bool { return o == c })
	a.mu.Unlock()
	var r apiReply
	if f != fateFailed {
		r.value, r.err = c.serve()
	}
	if f != fateServed {
		r = apiReply{nil, errLost}
	}
	c.reply <- r
}

// kill ends a process. Its calls may still be served.
func (a *modelAPI) kill(p *process) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p.dead = true
	for _, c := range a.calls {
		if c.from == p && !c.abandoned {
			c.abandoned = true
			c.reply <- apiReply{nil, errDead}
			c.reply = make(chan apiReply, 1)
		}
	}
}

// close ends all calls, so that all goroutines end.
func (a *modelAPI) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, c := range a.calls {
		if !c.abandoned {
			c.reply <- apiReply{nil, errDead}
		}
	}
	a.calls = nil
}

func (a *modelAPI) next() string {
	a.revision++
	return strconv.FormatInt(a.revision, 10)
}

// writePod stores a pod.
func (a *modelAPI) writePod(p *corev1.Pod) {
	p.ResourceVersion = a.next()
	a.pods[p.Name] = p
	a.podEvents = append(a.podEvents, watchEvent[*corev1.Pod]{a.revision, p, false})
}

// removePod deletes a pod.
func (a *modelAPI) removePod(name string) {
	p := a.pods[name].DeepCopy()
	p.ResourceVersion = a.next()
	delete(a.pods, name)
	a.podEvents = append(a.podEvents, watchEvent[*corev1.Pod]{a.revision, p, true})
}

// podsAt returns the pods at a revision.
func (a *modelAPI) podsAt(revision int64) map[string]*corev1.Pod {
	pods := map[string]*corev1.Pod{}
	for _, e := range a.podEvents {
		if e.revision > revision {
			break
		}
		if e.deleted {
			delete(pods, e.object.Name)
		} else {
			pods[e.object.Name] = e.object
		}
	}
	return pods
}

func (a *modelAPI) writeBudget(b *v1alpha1.PodUnavailableBudget) {
	b.ResourceVersion = a.next()
	a.budgets[b.Name] = b
	a.budgetEvents = append(a.budgetEvents, watchEvent[*v1alpha1.PodUnavailableBudget]{a.revision, b, false})
}

// budgetEventsUntil returns the number of budget events until a revision.
func (a *modelAPI) budgetEventsUntil(revision int64) (n int) {
	for n < len(a.budgetEvents) && a.budgetEvents[n].revision <= revision {
		n++
	}
	return n
}

// lastBudgets returns the budgets after the first n events.
func (a *modelAPI) lastBudgets(n int) map[string]*v1alpha1.PodUnavailableBudget {
	last := map[string]*v1alpha1.PodUnavailableBudget{}
	for _, e := range a.budgetEvents[:n] {
		last[e.object.Name] = e.object
	}
	return last
}

// swapStatus writes the status of a budget if its resourceVersion is the stored one.
func (a *modelAPI) swapStatus(next *v1alpha1.PodUnavailableBudget) (*v1alpha1.PodUnavailableBudget, error) {
	stored := a.budgets[next.Name]
	if stored.ResourceVersion != next.ResourceVersion {
		return nil, apierrs.NewConflict(v1alpha1.Resource("podunavailablebudgets"), next.Name, errors.New("changed"))
	}
	written := stored.DeepCopy()
	next.Status.DeepCopyInto(&written.Status)
	a.writeBudget(written)
	return written.DeepCopy(), nil
}

// budgetClient is the client of a process for budgets.
type budgetClient struct {
	policyclient.PodUnavailableBudgetInterface
	*process
}

func (c budgetClient) PodUnavailableBudgets(string) policyclient.PodUnavailableBudgetInterface {
	return c
}

func (c budgetClient) Get(ctx context.Context, name string, _ metav1.GetOptions) (*v1alpha1.PodUnavailableBudget, error) {
	return call(ctx, c.process, "get budget "+name, func() (*v1alpha1.PodUnavailableBudget, error) {
		return c.api.budgets[name].DeepCopy(), nil
	})
}

func (c budgetClient) UpdateStatus(ctx context.Context, b *v1alpha1.PodUnavailableBudget, _ metav1.UpdateOptions) (*v1alpha1.PodUnavailableBudget, error) {
	b = b.DeepCopy()
	return call(ctx, c.process, "write status of "+b.Name, func() (*v1alpha1.PodUnavailableBudget, error) {
		return c.api.swapStatus(b)
	})
}

// podClient is the client of a process for pods.
type podClient struct {
	corev1client.PodInterface
	*process
}

func (c podClient) Pods(string) corev1client.PodInterface { return c }
func (c podClient) get(name string) (*corev1.Pod, error) {
	if p, ok := c.api.pods[name]; ok {
		return p.DeepCopy(), nil
	}
	return nil, apierrs.NewNotFound(corev1.Resource("pods"), name)
}

func (c podClient) Get(ctx context.Context, name string, _ metav1.GetOptions) (*corev1.Pod, error) {
	return call(ctx, c.process, "get pod "+name, func() (*corev1.Pod, error) { return c.get(name) })
}

func (c podClient) List(ctx context.Context, _ metav1.ListOptions) (*corev1.PodList, error) {
	return call(ctx, c.process, "list pods", func() (*corev1.PodList, error) {
		list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatInt(c.api.revision, 10)}}
		for _, name := range slices.Sorted(maps.Keys(c.api.pods)) {
			list.Items = append(list.Items, *c.api.pods[name].DeepCopy())
		}
		return list, nil
	})
}
