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
	fresh = 10 * time.Second
	// patience is how long the centre may take; the API server waits for 5 s.
	patience = 3 * time.Second
)

// Centre knows permission sets.
type Centre interface {
	Set(ctx context.Context, name string) (api.PermissionSet, error)
}

// Catalogue asks the permission centre about sets.
type Catalogue struct {
	Centre Centre
	Known  *utilcache.Expiring
}

// NewCatalogue returns a Catalogue.
func NewCatalogue(c Centre) Catalogue {
	return Catalogue{c, utilcache.NewExpiringWithClock(clock.RealClock{})}
}

// Finding is what is wrong with sets, if anything is.
type Finding struct {
	// Unknown are those that do not exist.
	Unknown []string
	// PodScoped are those that grant to pods' own addresses.
	PodScoped []string
	// Err: the centre could not be asked about the rest.
	Err error
}

// Look asks about all sets.
func (c Catalogue) Look(ctx context.Context, sets []string) Finding {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var f Finding
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

func (c Catalogue) set(ctx context.Context, name string) (api.PermissionSet, error) {
	if set, ok := c.Known.Get(name); ok {
		return set.(api.PermissionSet), nil
	}
	set, err := c.Centre.Set(ctx, name)
	if err == nil {
		c.Known.Set(name, set, fresh)
	}
	return set, err
}
