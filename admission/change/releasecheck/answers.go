package releasecheck

import (
	"context"
	"fmt"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	versioned "github.com/breakwater-dev/breakwater/client/clientset/versioned/typed/change/v1alpha1"
)

// AnswerStore stores the answers of the server in ReleaseChecks. It reads from the API server instead of a
// cache, to see answers that another replica has just stored.
type AnswerStore struct {
	Client versioned.ReleaseChecksGetter
}

// Get returns the stored ReleaseCheck of a query, or nil.
func (a AnswerStore) Get(ctx context.Context, q Query) (*v1alpha1.ReleaseCheck, error) {
	name := v1alpha1.ReleaseCheckName(q.Kind, q.Name, q.Release.Version)
	found, err := a.Client.ReleaseChecks(q.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrs.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("get ReleaseCheck %s/%s: %w", q.Namespace, name, err)
	}
	return found, nil
}

// Store replaces before, which may be nil, with an answer. On a conflict, it returns the
// answer that another replica has stored, if Decide would use it instead of asking.
func (a AnswerStore) Store(ctx context.Context, q Query, before *v1alpha1.ReleaseCheck, answer v1alpha1.ReleaseCheckStatus) (v1alpha1.ReleaseCheckStatus, error) {
	checks := a.Client.ReleaseChecks(q.Namespace)
	var err error
	if before == nil {
		_, err = checks.Create(ctx, newReleaseCheck(q, answer), metav1.CreateOptions{})
	} else {
		after := before.DeepCopy()
		after.Status = answer
		_, err = checks.Update(ctx, after, metav1.UpdateOptions{})
	}
	if !apierrs.IsAlreadyExists(err) && !apierrs.IsConflict(err) {
		return answer, err
	}
	first, err := a.Get(ctx, q)
	if err != nil || first == nil {
		return answer, err
	}
	if first.Status.Outcome == v1alpha1.OutcomePass || fresh(first.Status, Input{Attempt: answer.Attempt, Now: answer.Time.Time}) {
		return first.Status, nil
	}
	// before was not read, or only its metadata changed
	first.Status = answer
	_, err = checks.Update(ctx, first, metav1.UpdateOptions{})
	if apierrs.IsConflict(err) {
		return answer, nil // the next request uses what another replica has stored meanwhile
	}
	return answer, err
}

func newReleaseCheck(q Query, answer v1alpha1.ReleaseCheckStatus) *v1alpha1.ReleaseCheck {
	return &v1alpha1.ReleaseCheck{
		ObjectMeta: metav1.ObjectMeta{
			Name:      v1alpha1.ReleaseCheckName(q.Kind, q.Name, q.Release.Version),
			Namespace: q.Namespace,
			// The same labels as on the ChangeWorkload: one selector matches both.
			Labels: map[string]string{
				v1alpha1.VersionKey:          q.Release.Version,
				v1alpha1.DeploymentNameLabel: v1alpha1.LabelValue(q.Name),
			},
		},
		Spec:   v1alpha1.ReleaseCheckSpec{Kind: q.Kind, Name: q.Name, Version: q.Release.Version},
		Status: answer,
	}
}
