package releasecheck

import (
	"context"
	"fmt"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	versioned "github.com/breakwater-dev/breakwater/client/clientset/versioned/typed/change/v1alpha1"
)

// Records keeps answers in ReleaseChecks. It reads the API server and not a
// cache: an answer that another webhook has stored a moment ago counts.
type Records struct {
	Client versioned.ReleaseChecksGetter
}

// Get returns what is kept of a question; nil when nothing is.
func (r Records) Get(ctx context.Context, q Query) (*v1alpha1.ReleaseCheck, error) {
	name := v1alpha1.ReleaseCheckName(q.Kind, q.Name, q.Release.Version)
	found, err := r.Client.ReleaseChecks(q.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrs.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read ReleaseCheck %s/%s: %w", q.Namespace, name, err)
	}
	return found, nil
}

// Store stores an answer in place of what was read before, which may be nil.
// When somebody else was faster, theirs is the answer, and is returned.
func (r Records) Store(ctx context.Context, q Query, before *v1alpha1.ReleaseCheck, answer v1alpha1.ReleaseCheckStatus) (v1alpha1.ReleaseCheckStatus, error) {
	checks := r.Client.ReleaseChecks(q.Namespace)
	var err error
	if before == nil {
		_, err = checks.Create(ctx, newRecord(q, answer), metav1.CreateOptions{})
	} else {
		after := before.DeepCopy()
		after.Status = answer
		_, err = checks.Update(ctx, after, metav1.UpdateOptions{})
	}
	if !apierrs.IsAlreadyExists(err) && !apierrs.IsConflict(err) {
		return answer, err
	}
	first, err := r.Get(ctx, q)
	if err != nil || first == nil || first.Status.Outcome == "" {
		return answer, err
	}
	return first.Status, nil
}

func newRecord(q Query, answer v1alpha1.ReleaseCheckStatus) *v1alpha1.ReleaseCheck {
	return &v1alpha1.ReleaseCheck{
		ObjectMeta: metav1.ObjectMeta{
			Name:      v1alpha1.ReleaseCheckName(q.Kind, q.Name, q.Release.Version),
			Namespace: q.Namespace,
			// As on the ChangeWorkload of the release: one selector finds both.
			Labels: map[string]string{
				v1alpha1.VersionKey:          q.Release.Version,
				v1alpha1.DeploymentNameLabel: v1alpha1.LabelValue(q.Name),
			},
		},
		Spec:   v1alpha1.ReleaseCheckSpec{Kind: q.Kind, Name: q.Name, Version: q.Release.Version},
		Status: answer,
	}
}
