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
	// fresh is how long an answer of the centre counts. One that there is no such
	// set counts not at all: it may be registered the next moment.
	setTTL = 10 * time.Second
	// patience is how long the centre may take; the API server waits for 5 s.
	centreTimeout = 3 * time.Second
)

// Centre knows permission sets.
type Centre interface {
	PermissionSet(ctx context.Context, name string) (api.PermissionSet, error)
}

// Catalogue asks the permission centre about sets.
type SetChecker struct {
	Centre Centre
	Cache  *utilcache.Expiring
}

// NewCatalogue returns a Catalogue.
func NewSetChecker(c Centre) SetChecker {
	return SetChecker{c, utilcache.NewExpiringWithClock(clock.RealClock{})}
}

// Finding is what is wrong with sets, if anything is.
type CheckResult struct {
	// Unknown are those that do not exist.
	Unknown []string
	// PodScoped are those that grant to pods' own addresses.
	PodScoped []string
	// Err: the centre could not be asked about the rest.
	Err error
}

// Look asks about all sets.
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
			return f // the others would take as long
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
