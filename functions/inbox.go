package functions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
	"github.com/breakwater-dev/breakwater/internal/groupcommit"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
)

// MaxInbox is the maximum number of verdicts in the inbox of a ChangeWorkload.
const MaxInbox = 64

// ErrInboxFull reports that the inbox has MaxInbox verdicts.
var ErrInboxFull = errors.New("the inbox of the release is full")

// ErrNoRoomForPass reports that the inbox is full and the verdict is a pass, which can be retrieved
// from the server again. It is an ErrInboxFull.
var ErrNoRoomForPass = fmt.Errorf("%w; the pass can be retrieved from the server", ErrInboxFull)

// ErrReleaseReplaced reports that the ChangeWorkload was replaced by a later one of the same
// name.
var ErrReleaseReplaced = errors.New("the release was replaced by a later one of the same name")

// Inbox stores verdicts in the inboxes of ChangeWorkloads. Verdicts for one release that arrive
// together share a write: while the Broker is slow there are many of them, and each write of its
// own would make the others fail with a conflict.
type Inbox struct {
	commit *groupcommit.Committer[*v1alpha1.ChangeWorkload, inboxRequest, error]
}

// inboxRequest is a verdict and the release that it is for.
type inboxRequest struct {
	uid     types.UID
	verdict v1alpha1.InboxVerdict
}

// NewInbox returns an Inbox.
func NewInbox(client versioned.Interface) *Inbox {
	return &Inbox{groupcommit.New(inboxStore{client}, addToInbox, groupcommit.Options{ReturnErrors: true, Margin: time.Millisecond})}
}

// Add stores a verdict in the inbox of its ChangeWorkload, by compare-and-swap. The
// ChangeWorkload reconciler sends it again. Adding a verdict twice is not an error; a pass replaces
// the same pass without rules. In a full inbox a pass is replaced by any other verdict, because only
// a pass can be retrieved from the server again.
func (i *Inbox) Add(ctx context.Context, release types.NamespacedName, uid types.UID, v v1alpha1.InboxVerdict) error {
	refused, err := i.commit.Do(ctx, release, inboxRequest{uid, v})
	if err != nil {
		return fmt.Errorf("write the inbox of %s: %w", release, err)
	}
	return refused
}

// addToInbox decides about verdicts that are added together. An answer is nil, or the reason why
// the verdict is not in the inbox.
func addToInbox(w *v1alpha1.ChangeWorkload, requests []inboxRequest) groupcommit.Decision[*v1alpha1.ChangeWorkload, error] {
	next := w.DeepCopy()
	d := groupcommit.Decision[*v1alpha1.ChangeWorkload, error]{Next: next}
	for _, r := range requests {
		var err error
		full := len(next.Status.Inbox) >= MaxInbox
		pass := slices.IndexFunc(next.Status.Inbox, isPassOnly)
		same := slices.IndexFunc(next.Status.Inbox, func(old v1alpha1.InboxVerdict) bool { return old.ID == r.verdict.ID })
		switch {
		case w.UID != r.uid:
			err = ErrReleaseReplaced
		case same >= 0:
			if old := &next.Status.Inbox[same]; old.WithoutRules && !r.verdict.WithoutRules {
				*old = r.verdict
				d.Changed = true
			}
		case full && isPassOnly(r.verdict):
			err = ErrNoRoomForPass
		case full && pass < 0:
			err = ErrInboxFull
		default:
			if full {
				next.Status.Inbox = slices.Delete(next.Status.Inbox, pass, pass+1)
			}
			next.Status.Inbox = append(next.Status.Inbox, r.verdict)
			d.Changed = true
		}
		d.Answers = append(d.Answers, err)
	}
	return d
}

// isPassOnly reports whether a verdict is a pass without results of pods.
func isPassOnly(v v1alpha1.InboxVerdict) bool {
	return v1alpha1.ParseVerdict(v.Verdict) == v1alpha1.OutcomePass && len(v.PodResults) == 0
}

// inboxStore reads and writes ChangeWorkloads. It has no cache.
type inboxStore struct{ client versioned.Interface }

// Cached implements groupcommit.Store.
func (inboxStore) Cached(types.NamespacedName) (*v1alpha1.ChangeWorkload, bool) { return nil, false }

// Live implements groupcommit.Store.
func (s inboxStore) Live(ctx context.Context, key types.NamespacedName) (*v1alpha1.ChangeWorkload, error) {
	return s.client.AppV1alpha1().ChangeWorkloads(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
}

// Swap implements groupcommit.Store.
func (s inboxStore) Swap(ctx context.Context, next *v1alpha1.ChangeWorkload) (*v1alpha1.ChangeWorkload, error) {
	before := next.DeepCopy()
	before.Status.Inbox = nil // so that the patch has the whole inbox
	return statuspatch.Write(ctx, s.client.AppV1alpha1().ChangeWorkloads(next.Namespace), "", before, next, statuspatch.ChangeWorkloadInbox)
}
