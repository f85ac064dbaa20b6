package functions

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
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

// AddToInbox stores a verdict in the inbox of its ChangeWorkload, by compare-and-swap. The
// ChangeWorkload reconciler sends it again. Adding a verdict twice is not an error. In a full
// inbox a pass is replaced by any other verdict, because only a pass can be retrieved from the
// server again.
func AddToInbox(ctx context.Context, client versioned.Interface, namespace, name string, uid types.UID, v v1alpha1.InboxVerdict) error {
	releases := client.AppV1alpha1().ChangeWorkloads(namespace)
	_, err := PatchStatus(ctx, releases, name, statuspatch.ChangeWorkloadInbox, func(w *v1alpha1.ChangeWorkload) error {
		switch {
		case w.UID != uid:
			return ErrReleaseReplaced
		case slices.ContainsFunc(w.Status.Inbox, func(old v1alpha1.InboxVerdict) bool { return old.ID == v.ID }):
			return nil
		case len(w.Status.Inbox) >= MaxInbox:
			i := slices.IndexFunc(w.Status.Inbox, isPassOnly)
			switch {
			case isPassOnly(v):
				return ErrNoRoomForPass
			case i < 0:
				return ErrInboxFull
			}
			w.Status.Inbox = slices.Delete(slices.Clone(w.Status.Inbox), i, i+1)
		}
		w.Status.Inbox = append(w.Status.Inbox, v)
		return nil
	})
	return err
}

// isPassOnly reports whether a verdict is a pass without results of pods.
func isPassOnly(v v1alpha1.InboxVerdict) bool {
	return v1alpha1.ParseVerdict(v.Verdict) == v1alpha1.OutcomePass && len(v.PodResults) == 0
}
