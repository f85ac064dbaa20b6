package rest

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/lifecycle"
)

// getCluster returns the state of the reports of a cluster.
func (s *Server) getCluster(c echo.Context) error {
	if err := s.Roles.MayActFor(user(c), c.Param("cluster")); err != nil {
		return err
	}
	cluster, err := s.Store.View(c.Request().Context()).Cluster(c.Param("cluster"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, lifecycle.ClusterToAPI(cluster))
}

func (s *Server) reconcilePods(c echo.Context) error {
	var r api.PodReport
	if err := decode(c, &r); err != nil {
		return err
	}
	if err := s.Roles.MayActFor(user(c), c.Param("cluster")); err != nil {
		return err
	}
	result, err := s.Engine.ApplyPodReport(c.Request().Context(), c.Param("cluster"), r, userName(c))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, result)
}

// confirmReport lets an admin confirm revocations by the reports of the next 24 h, or the UID of
// a cluster.
func (s *Server) confirmReport(c echo.Context) error {
	var r api.ReportConfirmation
	if err := decode(c, &r); err != nil {
		return err
	}
	if err := s.Roles.MayAdmin(user(c), "confirming a report of existing pods"); err != nil {
		return err
	}
	cluster, err := s.Engine.ConfirmReport(c.Request().Context(), c.Param("cluster"), r, userName(c))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, cluster)
}
