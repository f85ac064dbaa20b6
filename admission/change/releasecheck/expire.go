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
	// Retention is how long an answer is stored. The next run of DeleteExpired deletes it, and
	// the server is asked again, even about a version that passed.
	Retention = 7 * 24 * time.Hour
	// ExpiryInterval is the time between two runs of DeleteExpired.
	ExpiryInterval = time.Hour
	// pageSize is the page size of lists.
	pageSize = 500
)

// DeleteExpired deletes answers older than Retention. All replicas may run it, because
// deletions are idempotent.
func (a AnswerStore) DeleteExpired(ctx context.Context, now time.Time) error {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		found, err := a.Client.ReleaseChecks(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return fmt.Errorf("list ReleaseChecks: %w", err)
		}
		for i := range found.Items {
			if err := a.deleteIfExpired(ctx, &found.Items[i], now); err != nil {
				return err
			}
		}
		if options.Continue = found.Continue; options.Continue == "" {
			return nil
		}
	}
}

func (a AnswerStore) deleteIfExpired(ctx context.Context, c *v1alpha1.ReleaseCheck, now time.Time) error {
	last := c.CreationTimestamp.Time
	if c.Status.Time.After(last) {
		last = c.Status.Time.Time
	}
	if now.Sub(last) < Retention {
		return nil
	}
	// With preconditions: another replica may have stored a new answer.
	err := a.Client.ReleaseChecks(c.Namespace).Delete(ctx, c.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &c.UID, ResourceVersion: &c.ResourceVersion},
	})
	if err != nil && !apierrs.IsNotFound(err) && !apierrs.IsConflict(err) {
		return fmt.Errorf("delete ReleaseCheck %s/%s: %w", c.Namespace, c.Name, err)
	}
	return nil
}
