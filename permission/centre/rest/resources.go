package rest

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/access"
	"github.com/breakwater-dev/breakwater/permission/centre/registry"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// rules are the authorization rules of a kind.
type rules[T any] struct {
	meta func(*T) *api.Meta
	// authorize checks that the user may change before to after; before is nil for
	// a creation, after is nil for a deletion.
	authorize func(v store.View, u access.User, before, after *T) error
	// redact hides fields that only the owner and admins may see.
	redact func(u access.User, o T) T
}

// register adds the routes of a kind.
func register[T api.Provider | api.Permission | api.PermissionSet](g *echo.Group, s *Server, kind registry.Resource[T], rules rules[T]) {
	g.GET("", func(c echo.Context) error {
		p, err := page(c)
		if err != nil {
			return err
		}
		items, err := kind.List(c.Request().Context(), p)
		if err != nil {
			return err
		}
		list := api.List[T]{Items: make([]T, len(items))}
		for i, item := range items {
			list.Items[i] = rules.redact(user(c), item)
			list.Continue = continueToken(len(items), p.Limit, rules.meta(&item).Name)
		}
		return c.JSON(http.StatusOK, list)
	})
	g.GET("/:name", func(c echo.Context) error {
		o, err := kind.Get(c.Request().Context(), c.Param("name"))
		if err != nil {
			return err
		}
		return writeObject(c, http.StatusOK, rules, o)
	})
	g.POST("", func(c echo.Context) error {
		var o T
		if err := decode(c, &o); err != nil {
			return err
		}
		if err := rules.authorize(s.Store.View(c.Request().Context()), user(c), nil, &o); err != nil {
			return err
		}
		o, err := kind.Create(c.Request().Context(), o, userName(c))
		if err != nil {
			return err
		}
		return writeObject(c, http.StatusCreated, rules, o)
	})
	g.PUT("/:name", func(c echo.Context) error {
		var o T
		version, err := ifMatch(c)
		if err != nil {
			return err
		}
		if err := decode(c, &o); err != nil {
			return err
		}
		if m := rules.meta(&o); m.Name == "" {
			m.Name = c.Param("name")
		} else if m.Name != c.Param("name") {
			return badRequest("name", fmt.Sprintf("%q differs from the name in the path; names are immutable", m.Name))
		}
		o, err = kind.Update(c.Request().Context(), c.Param("name"), o, version, userName(c), func(v store.View, before T) error {
			return rules.authorize(v, user(c), &before, &o)
		})
		if err != nil {
			return err
		}
		return writeObject(c, http.StatusOK, rules, o)
	})
	g.DELETE("/:name", func(c echo.Context) error {
		version, err := ifMatch(c)
		if err != nil {
			return err
		}
		err = kind.Delete(c.Request().Context(), c.Param("name"), version, userName(c), func(v store.View, before T) error {
			return rules.authorize(v, user(c), &before, nil)
		})
		if err != nil {
			return err
		}
		return c.NoContent(http.StatusNoContent)
	})
}

func writeObject[T any](c echo.Context, status int, rules rules[T], o T) error {
	setETag(c, rules.meta(&o).Version)
	return c.JSON(status, rules.redact(user(c), o))
}
