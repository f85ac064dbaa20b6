package rest

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/lifecycle"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// historyLimit is how many of an application's changes are shown.
const historyLimit = 1000

func (s *Server) ask(c echo.Context) error {
	var r api.ApplicationRequest
	if err := decode(c, &r); err != nil {
		return err
	}
	if err := checkRequest(r); err != nil {
		return err
	}
	if err := s.Roles.MaySpeakFor(user(c), r.Cluster); err != nil {
		return err
	}
	app, grants, asked, err := s.Engine.Ask(c.Request().Context(), r, who(c))
	if err != nil {
		return err
	}
	return s.show(c, map[lifecycle.Asked]int{lifecycle.AskedNew: http.StatusCreated, lifecycle.AskedAgain: http.StatusAccepted, lifecycle.AskedSame: http.StatusOK}[asked], app, grants)
}

func checkRequest(r api.ApplicationRequest) error {
	for _, f := range []struct{ name, value string }{
		{"cluster", r.Cluster}, {"namespace", r.Namespace}, {"pod", r.Pod}, {"podUID", r.PodUID}, {"set", r.Set},
	} {
		if f.value == "" || len(f.value) > 253 || strings.ContainsAny(f.value, "\x00\n") {
			return bad(f.name, "needed, of at most 253 characters")
		}
	}
	if len(r.PodIPs) == 0 || len(r.PodIPs) > 4 || len(r.NodeIPs) > 8 {
		return bad("podIPs", "1 to 4 addresses are needed, and at most 8 nodeIPs")
	}
	for field, ips := range map[string][]string{"podIPs": r.PodIPs, "nodeIPs": r.NodeIPs} {
		for i, ip := range ips {
			addr, err := netip.ParseAddr(ip)
			if err != nil || addr.String() != ip || addr.Zone() != "" || addr.IsUnspecified() || addr.IsMulticast() {
				return bad(fmt.Sprintf("%s[%d]", field, i), fmt.Sprintf("%q is no address of a pod, as Kubernetes writes it", ip))
			}
		}
	}
	return nil
}

func (s *Server) list(c echo.Context) error {
	p, err := page(c)
	if err != nil {
		return err
	}
	q := c.QueryParam
	f := store.Filter{Cluster: q("cluster"), Namespace: q("namespace"), Pod: q("pod"), PodUID: q("podUID"), IP: q("ip"), Set: q("set")}
	for _, state := range c.QueryParams()["state"] {
		for one := range strings.SplitSeq(state, ",") {
			f.States = append(f.States, api.State(one))
		}
	}
	u := user(c)
	switch clusters := s.Roles.ClustersOf(u); {
	case s.Roles.Admin(u), f.Cluster != "" && slices.Contains(clusters, f.Cluster):
	case len(clusters) == 1 && f.Cluster == "":
		f.Cluster = clusters[0]
	default:
		f.Owners = u.Names()
	}
	apps, err := s.Store.View(c.Request().Context()).Applications(f, p)
	if err != nil {
		return err
	}
	return s.showList(c, apps, p.Limit)
}

// showList shows applications with their grants.
func (s *Server) showList(c echo.Context, apps []store.Application, limit int) error {
	list := api.ApplicationList{Items: make([]api.Application, 0, len(apps))}
	for _, a := range apps {
		grants, err := s.Store.View(c.Request().Context()).Grants(a.ID)
		if err != nil {
			return err
		}
		shown, err := s.Engine.Show(c.Request().Context(), a, grants)
		if err != nil {
			return err
		}
		list.Items = append(list.Items, shown)
		list.Continue = following(len(apps), limit, a.ID)
	}
	return c.JSON(http.StatusOK, list)
}

// visible reads an application that the user may see.
func (s *Server) visible(c echo.Context) (store.Application, []store.Grant, error) {
	v := s.Store.View(c.Request().Context())
	app, err := v.Application(c.Param("id"))
	if err != nil {
		return app, nil, err
	}
	grants, err := v.Grants(app.ID)
	if err != nil {
		return app, nil, err
	}
	return app, grants, s.Roles.MaySee(user(c), app.Request.Cluster, owners(grants))
}

func owners(grants []store.Grant) []string {
	var all []string
	for _, g := range grants {
		all = append(all, g.Owner)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (s *Server) history(c echo.Context) error {
	app, _, err := s.visible(c)
	if err != nil {
		return err
	}
	entries, err := s.Store.View(c.Request().Context()).History(app.ID, historyLimit)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, api.History{Items: entries})
}

func (s *Server) revoke(c echo.Context) error {
	app, grants, err := s.visible(c)
	if err != nil {
		return err
	}
	if err := s.Roles.MayRevoke(user(c), app.Request.Cluster, owners(grants)); err != nil {
		return err
	}
	app, grants, _, err = s.Engine.Revoke(c.Request().Context(), app.ID, who(c))
	if err != nil {
		return err
	}
	status := http.StatusAccepted
	if app.State == api.Revoked || app.State == api.Leaked {
		status = http.StatusOK
	}
	return s.show(c, status, app, grants)
}

func (s *Server) reset(c echo.Context) error {
	app, _, err := s.visible(c)
	if err != nil {
		return err
	}
	app, grants, asked, err := s.Engine.Reset(c.Request().Context(), app.ID, who(c))
	if err != nil {
		return err
	}
	status := http.StatusOK
	if asked == lifecycle.AskedAgain {
		status = http.StatusAccepted
	}
	return s.show(c, status, app, grants)
}

func (s *Server) revokePod(c echo.Context) error {
	var r api.RevokeRequest
	if err := decode(c, &r); err != nil {
		return err
	}
	if r.Cluster == "" || r.PodUID == "" {
		return bad("podUID", "cluster and podUID are needed")
	}
	if err := s.Roles.MaySpeakFor(user(c), r.Cluster); err != nil {
		return err
	}
	ids, err := s.Engine.RevokePod(c.Request().Context(), r, who(c))
	if err != nil {
		return err
	}
	apps := make([]store.Application, 0, len(ids))
	for _, id := range ids {
		app, err := s.Store.View(c.Request().Context()).Application(id)
		if err != nil {
			return err
		}
		apps = append(apps, app)
	}
	return s.showList(c, apps, len(apps)+1)
}

func (s *Server) report(c echo.Context) error {
	var r api.PodReport
	if err := decode(c, &r); err != nil {
		return err
	}
	if err := s.Roles.MaySpeakFor(user(c), c.Param("cluster")); err != nil {
		return err
	}
	result, err := s.Engine.Report(c.Request().Context(), c.Param("cluster"), r, who(c))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, result)
}

func (s *Server) show(c echo.Context, status int, app store.Application, grants []store.Grant) error {
	shown, err := s.Engine.Show(c.Request().Context(), app, grants)
	if err != nil {
		return err
	}
	setETag(c, app.Version)
	return c.JSON(status, shown)
}
