package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// firstReadTimeout is how long follow repeats its first read and watch: longer than an API server restarts.
const firstReadTimeout = 30 * time.Second

// follow calls read now and after each change of a release or batch of the namespace, until read is done, returns a
// final error (isFinal), or the context ends. It prints other errors, each once, and reads again. Without a successful
// read within firstReadTimeout, each error is final.
func (a *app) follow(ctx context.Context, c *clients, namespace string, read func() (done bool, err error)) error {
	var changed <-chan struct{}
	printed, begin := "", time.Now()
	for {
		late := changed == nil && time.Since(begin) >= firstReadTimeout
		done, err := read()
		if changed == nil && err == nil && !done {
			changed, err = c.changes(ctx, namespace)
		}
		if done || isFinal(err) || late && err != nil || ctx.Err() != nil {
			return err
		}
		if err == nil {
			printed = ""
			select {
			case <-ctx.Done():
			case <-changed:
			}
		} else if printed != err.Error() { // there may be no other change
			printed = err.Error()
			_, _ = fmt.Fprintf(a.ErrOut, "%s; reading again\n", printed)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(watchInterval):
		}
	}
}

// isFinal reports whether a read that failed would fail again.
func isFinal(err error) bool {
	return errors.As(err, new(argumentError)) || errors.As(err, new(*tls.CertificateVerificationError)) ||
		apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}
