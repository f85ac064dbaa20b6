package releasecheck

import (
	"context"
	"fmt"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

const (
	// Retention is how long an answer is kept. A version that passed longer ago is
	// asked about again.
	Retention = 7 * 24 * time.Hour
	// ExpiryInterval is how often old answers are looked for.
	ExpiryInterval = time.Hour
	// page is how many are read at once.
	page = 500
)

// DeleteExpired deletes the answers that are older than Kept. Every webhook may do so:
// a second deletion does nothing.
func (r Records) DeleteExpired(ctx context.Context, now time.Time) error {
	options := metav1.ListOptions{Limit: page}
	for {
		found, err := r.Client.ReleaseChecks(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return fmt.Errorf("list ReleaseChecks: %w", err)
		}
		for i := range found.Items {
			if err := r.sweep(ctx, &found.Items[i], now); err != nil {
				return err
			}
		}
		if options.Continue = found.Continue; options.Continue == "" {
			return nil
		}
	}
}

func (r Records) sweep(ctx context.Context, c *v1alpha1.ReleaseCheck, now time.Time) error {
	last := c.CreationTimestamp.Time
	if c.Status.Time.After(last) {
		last = c.Status.Time.Time
	}
	if now.Sub(last) < Retention {
		return nil
	}
	// Only as it was read: it may have got a new answer meanwhile.
	err := r.Client.ReleaseChecks(c.Namespace).Delete(ctx, c.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &c.UID, ResourceVersion: &c.ResourceVersion},
	})
	if err != nil && !apierrs.IsNotFound(err) && !apierrs.IsConflict(err) {
		return fmt.Errorf("delete ReleaseCheck %s/%s: %w", c.Namespace, c.Name, err)
	}
	return nil
}
