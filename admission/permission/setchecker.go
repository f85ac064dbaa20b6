package permission

import (
	"context"
	"time"

	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centreclient"
)

const (
	// setTTL is how long a set is cached. Unknown sets are not cached, because they
	// may be registered at any time.
	setTTL = 10 * time.Second
	// centreTimeout bounds the calls to the centre; the API server waits for 5 s.
	centreTimeout = 3 * time.Second
)

// Centre reads permission sets from the permission centre.
type Centre interface {
	PermissionSet(ctx context.Context, name string) (api.PermissionSet, error)
}

// SetChecker checks permission sets at the permission centre and caches them.
type SetChecker struct {
	Centre Centre
	Cache  *utilcache.Expiring
}

// NewSetChecker returns a SetChecker.
func NewSetChecker(c Centre) SetChecker {
	return SetChecker{c, utilcache.NewExpiringWithClock(clock.RealClock{})}
}

// CheckResult is the result of a check of sets.
type CheckResult struct {
	// Unknown are the sets that do not exist.
	Unknown []string
	// PodScoped are the sets that grant to the addresses of pods.
	PodScoped []string
	// Err is the error of a call to the centre; the remaining sets are unchecked.
	Err error
}

// Check checks all sets.
func (c SetChecker) Check(ctx context.Context, sets []string) CheckResult {
	ctx, cancel := context.WithTimeout(ctx, centreTimeout)
	defer cancel()
	var f CheckResult
	for _, name := range sets {
		set, err := c.set(ctx, name)
		switch {
		case centreclient.IsNotFound(err):
			f.Unknown = append(f.Unknown, name)
		case err != nil:
			f.Err = err
			return f // the other calls would probably fail too
		case !set.NodeScoped:
			f.PodScoped = append(f.PodScoped, name)
		}
	}
	return f
}

func (c SetChecker) set(ctx context.Context, name string) (api.PermissionSet, error) {
	if set, ok := c.Cache.Get(name); ok {
		return set.(api.PermissionSet), nil
	}
	set, err := c.Centre.PermissionSet(ctx, name)
	if err == nil {
		c.Cache.Set(name, set, setTTL)
	}
	return set, err
}
