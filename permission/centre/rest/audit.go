package rest

import (
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/breakwater-dev/breakwater/permission/api"
)

func (s *Server) listAudit(c echo.Context) error {
	if err := s.Roles.MayAdmin(user(c), "reading the audit"); err != nil {
		return err
	}
	p, err := page(c)
	if err != nil {
		return err
	}
	before := int64(0)
	if p.After != "" {
		if before, err = strconv.ParseInt(p.After, 10, 64); err != nil {
			return badRequest("continue", "must be the value of continue in the previous page")
		}
	}
	entries, err := s.Store.View(c.Request().Context()).Audit(c.QueryParam("kind"), c.QueryParam("name"), c.QueryParam("who"), before, p.Limit)
	if err != nil {
		return err
	}
	list := api.List[api.AuditEntry]{Items: entries}
	if list.Items == nil {
		list.Items = []api.AuditEntry{}
	}
	if n := len(entries); n > 0 {
		list.Continue = continueToken(n, p.Limit, strconv.FormatInt(entries[n-1].ID, 10))
	}
	return c.JSON(http.StatusOK, list)
}
