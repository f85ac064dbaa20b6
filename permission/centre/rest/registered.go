package rest

import (
	"context"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/access"
	"github.com/breakwater-dev/breakwater/permission/centre/registry"
)

// rules are what a kind's users may.
type rules[T any] struct {
	meta func(*T) *api.Meta
	// write says whether the user may create or change it to after; before is
	// nil for a new one, after when it is deleted.
	write func(ctx context.Context, u access.User, before, after *T) error
	// show hides what is the owner's business.
	show func(u access.User, o T) T
}

// register adds a kind's routes.
func register[T api.Provider | api.Permission | api.PermissionSet](g *echo.Group, _ *Server, kind registry.Resource[T], rules rules[T]) {
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
			list.Items[i] = rules.show(user(c), item)
			list.Continue = following(len(items), p.Limit, rules.meta(&item).Name)
		}
		return c.JSON(http.StatusOK, list)
	})
	g.GET("/:name", func(c echo.Context) error {
		o, err := kind.Get(c.Request().Context(), c.Param("name"))
		if err != nil {
			return err
		}
		return answer(c, http.StatusOK, rules, o)
	})
	g.POST("", func(c echo.Context) error {
		var o T
		if err := decode(c, &o); err != nil {
			return err
		}
		if err := rules.write(c.Request().Context(), user(c), nil, &o); err != nil {
			return err
		}
		o, err := kind.Create(c.Request().Context(), o, who(c))
		if err != nil {
			return err
		}
		return answer(c, http.StatusCreated, rules, o)
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
			return bad("name", fmt.Sprintf("%q is not the name in the path; names do not change", m.Name))
		}
		o, err = kind.Update(c.Request().Context(), c.Param("name"), o, version, who(c), func(ctx context.Context, before T) error {
			return rules.write(ctx, user(c), &before, &o)
		})
		if err != nil {
			return err
		}
		return answer(c, http.StatusOK, rules, o)
	})
	g.DELETE("/:name", func(c echo.Context) error {
		version, err := ifMatch(c)
		if err != nil {
			return err
		}
		err = kind.Delete(c.Request().Context(), c.Param("name"), version, who(c), func(ctx context.Context, before T) error {
			return rules.write(ctx, user(c), &before, nil)
		})
		if err != nil {
			return err
		}
		return c.NoContent(http.StatusNoContent)
	})
}

func answer[T any](c echo.Context, status int, rules rules[T], o T) error {
	setETag(c, rules.meta(&o).Version)
	return c.JSON(status, rules.show(user(c), o))
}
