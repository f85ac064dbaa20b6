package functions

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
)

// MaxInbox is how many verdicts wait on one ChangeWorkload.
const MaxInbox = 64

// ErrInboxFull says that the inbox took no more.
var ErrInboxFull = errors.New("the inbox of the release is full")

// ErrOtherRelease says that the ChangeWorkload is a later one of the same name.
var ErrOtherRelease = errors.New("the release is another one by now")

// PutIntoInbox makes a verdict durable on its ChangeWorkload, by
// compare-and-swap, for the ChangeWorkload reconciler to send again. A verdict
// that is there already is a success. In a full inbox a fail takes the place of a
// pass: the server repeats a pass when it is asked, and nothing else.
func PutIntoInbox(ctx context.Context, client versioned.Interface, namespace, name string, uid types.UID, v v1alpha1.InboxVerdict) error {
	workloads := client.AppV1alpha1().ChangeWorkloads(namespace)
	_, err := Swap(ctx, workloads, name, statuspatch.ChangeWorkloadInbox, func(w *v1alpha1.ChangeWorkload) error {
		switch {
		case w.UID != uid:
			return ErrOtherRelease
		case slices.ContainsFunc(w.Status.Inbox, func(old v1alpha1.InboxVerdict) bool { return old.ID == v.ID }):
			return nil
		case len(w.Status.Inbox) >= MaxInbox:
			at := slices.IndexFunc(w.Status.Inbox, onlyPass)
			if onlyPass(v) || at < 0 {
				return ErrInboxFull
			}
			w.Status.Inbox = slices.Delete(slices.Clone(w.Status.Inbox), at, at+1)
		}
		w.Status.Inbox = append(w.Status.Inbox, v)
		return nil
	})
	return err
}

// onlyPass says whether a verdict is a pass and nothing else.
func onlyPass(v v1alpha1.InboxVerdict) bool {
	return v1alpha1.ParseVerdict(v.Verdict) == v1alpha1.OutcomePass && len(v.PodResults) == 0
}
