package submit

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
)

// storeAllTimeout limits the writes of a process that ends.
const storeAllTimeout = 2 * time.Second

// unstoredAnswer is the answer to the finish of a batch, which is stored if no verdict follows.
type unstoredAnswer struct {
	namespace, name string
	uid             types.UID
	at              time.Time
}

// unstoredAnswers has at most maxAnswers answers; the zero value is empty.
type unstoredAnswers struct {
	mu  sync.Mutex
	all map[types.UID]unstoredAnswer
}

func (l *unstoredAnswers) add(p *v1alpha1.ChangePod, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[types.UID]unstoredAnswer{}
	}
	if len(l.all) < maxAnswers { // further answers count as lost
		l.all[p.UID] = unstoredAnswer{p.Namespace, p.Name, p.UID, at}
	}
}

func (l *unstoredAnswers) drop(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, uid)
}

// take removes and returns the answers that arrived at until or before.
func (l *unstoredAnswers) take(until time.Time) []unstoredAnswer {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []unstoredAnswer
	for uid, a := range l.all {
		if !a.at.After(until) {
			out = append(out, a)
			delete(l.all, uid)
		}
	}
	return out
}

// Run stores answers that no verdict followed within resend.VerdictDelay, and all others when
// ctx ends; AfterDrain stores those that come later. They must be stored: function submit asks
// the server about a call without a stored answer.
func (f *Finisher) Run(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) { f.StoreAnswers(ctx, resend.VerdictDelay) }, resend.VerdictDelay)
	f.storeAll(ctx)
	return nil
}

// AfterDrain waits for the calls in flight and stores their answers. It must be called after
// the last verdict was handled: no call begins then.
func (f *Finisher) AfterDrain(ctx context.Context) {
	f.calls.Wait()
	f.storeAll(ctx)
}

// storeAll stores all answers, also if ctx has ended.
func (f *Finisher) storeAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeAllTimeout)
	defer cancel()
	f.StoreAnswers(ctx, 0)
}

// StoreAnswers stores the answers that are at least age old and whose batches have no POST
// verdict. An answer that cannot be stored counts as lost.
func (f *Finisher) StoreAnswers(ctx context.Context, age time.Duration) {
	for _, a := range f.unstored.take(f.clock.Now().Add(-age)) {
		_, err := functions.PatchStatus(ctx, f.client.AppV1alpha1().ChangePods(a.namespace), a.name, statuspatch.ChangePodFinish, func(batch *v1alpha1.ChangePod) error {
			if batch.UID == a.uid && batch.Status.VerdictOf(v1alpha1.StagePost) == nil {
				setFinishAccepted(&batch.Status, 1, a.at)
			}
			return nil
		})
		if err != nil {
			logging.FromContext(ctx).Warnw("Answer of a finish not stored", "changepod", a.namespace+"/"+a.name, "error", err)
		}
	}
}
