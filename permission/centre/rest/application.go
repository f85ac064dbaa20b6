package rest

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/breakwater-dev/breakwater/internal/text"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/lifecycle"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// maxHistory is the number of state changes that the history returns.
const maxHistory = 1000

func (s *Server) createApplication(c echo.Context) error {
	var r api.ApplicationRequest
	if err := decode(c, &r); err != nil {
		return err
	}
	if err := validateRequest(r); err != nil {
		return err
	}
	if err := s.Roles.MayActFor(user(c), r.Cluster); err != nil {
		return err
	}
	if uid := c.QueryParam("clusterUID"); uid != "" {
		if err := s.Engine.RegisterCluster(c.Request().Context(), r.Cluster, uid); err != nil {
			return err
		}
	}
	shown, outcome, err := s.Engine.RequestToAPI(c.Request().Context(), r, userName(c))
	if err != nil {
		return err
	}
	setETag(c, shown.Version)
	return c.JSON(map[lifecycle.RequestOutcome]int{lifecycle.RequestCreated: http.StatusCreated, lifecycle.RequestNewAttempt: http.StatusAccepted, lifecycle.RequestUnchanged: http.StatusOK}[outcome], shown)
}

// maxNodeIPs is the maximum number of addresses of a node. Some cloud providers report every
// address of its network interfaces, so that a node has dozens.
const maxNodeIPs = 256

func validateRequest(r api.ApplicationRequest) error {
	for _, f := range []struct{ name, value string }{
		{"cluster", r.Cluster}, {"namespace", r.Namespace}, {"pod", r.Pod}, {"podUID", r.PodUID}, {"set", r.Set},
	} {
		if f.value == "" || len(f.value) > 253 || strings.ContainsAny(f.value, "\x00\n") {
			return badRequest(f.name, "required, at most 253 characters, without NUL or newline")
		}
	}
	for _, f := range []struct {
		name    string
		ips     []string
		minimum int
		maximum int
	}{{"podIPs", r.PodIPs, 1, 4}, {"nodeIPs", r.NodeIPs, 0, maxNodeIPs}} {
		if len(f.ips) < f.minimum || len(f.ips) > f.maximum {
			return badRequest(f.name, fmt.Sprintf("must have %d to %d addresses", f.minimum, f.maximum))
		}
		for i, ip := range f.ips {
			addr, err := netip.ParseAddr(ip)
			if err != nil || addr.String() != ip || addr.Zone() != "" || addr.IsUnspecified() || addr.IsMulticast() {
				return badRequest(fmt.Sprintf("%s[%d]", f.name, i), fmt.Sprintf("%q is not the address of a pod or node in the format of Kubernetes, such as 10.0.0.1 or fd00::1", ip))
			}
		}
	}
	return nil
}

func (s *Server) listApplications(c echo.Context) error {
	p, err := page(c)
	if err != nil {
		return err
	}
	q := c.QueryParam
	f := store.Filter{Cluster: q("cluster"), Namespace: q("namespace"), Pod: q("pod"), PodUID: q("podUID"), IP: q("ip"), Set: q("set")}
	if f.States, err = states(c.QueryParams()["state"]); err != nil {
		return err
	}
	u := user(c)
	switch clusters := s.Roles.ClustersOf(u); {
	case s.Roles.Admin(u), f.Cluster != "" && slices.Contains(clusters, f.Cluster):
	case len(clusters) == 1 && f.Cluster == "":
		f.Cluster = clusters[0]
	default:
		f.Owners = u.OwnerNames()
	}
	apps, err := s.Store.View(c.Request().Context()).Applications(f, p)
	if err != nil {
		return err
	}
	return s.writeApplications(c, apps, p.Limit)
}

// states returns the states of the query parameters, each of them once. It is nil if all of
// the parameters are empty.
func states(parameters []string) (list []api.State, err error) {
	for _, parameter := range parameters {
		if parameter == "" {
			continue
		}
		for one := range strings.SplitSeq(parameter, ",") {
			state := api.State(one)
			if !slices.Contains(api.States(), state) {
				return nil, badRequest("state", fmt.Sprintf("%q is not a state; must be one or more of %v, separated by commas", text.Truncate(one, maxQuoted), api.States()))
			}
			if !slices.Contains(list, state) {
				list = append(list, state)
			}
		}
	}
	return list, nil
}

// writeApplications answers with applications and their grants.
func (s *Server) writeApplications(c echo.Context, apps []store.Application, limit int) error {
	items, err := s.Engine.ListToAPI(c.Request().Context(), apps)
	if err != nil {
		return err
	}
	list := api.ApplicationList{Items: items}
	if len(apps) > 0 {
		list.Continue = continueToken(len(apps), limit, apps[len(apps)-1].ID)
	}
	return c.JSON(http.StatusOK, list)
}

// readApplication reads the application of the path if the user may view it.
func (s *Server) readApplication(c echo.Context) (store.Application, []store.Grant, error) {
	v := s.Store.View(c.Request().Context())
	app, err := v.Application(c.Param("id"))
	if err != nil {
		return app, nil, err
	}
	grants, err := v.Grants(app.ID)
	if err != nil {
		return app, nil, err
	}
	return app, grants, s.Roles.MayView(user(c), app.Request.Cluster, owners(grants))
}

func owners(grants []store.Grant) []string {
	var all []string
	for _, g := range grants {
		all = append(all, g.Owner)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (s *Server) applicationHistory(c echo.Context) error {
	app, _, err := s.readApplication(c)
	if err != nil {
		return err
	}
	entries, err := s.Store.View(c.Request().Context()).History(app.ID, maxHistory)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, api.History{Items: entries})
}

func (s *Server) revokeApplication(c echo.Context) error {
	app, grants, err := s.readApplication(c)
	if err != nil {
		return err
	}
	if err := s.Roles.MayRevoke(user(c), app.Request.Cluster, owners(grants)); err != nil {
		return err
	}
	app, grants, _, err = s.Engine.Revoke(c.Request().Context(), app.ID, userName(c))
	if err != nil {
		return err
	}
	status := http.StatusAccepted
	if app.State == api.Revoked || app.State == api.Leaked {
		status = http.StatusOK
	}
	return s.writeApplication(c, status, app, grants)
}

func (s *Server) resetApplication(c echo.Context) error {
	app, _, err := s.readApplication(c)
	if err != nil {
		return err
	}
	app, grants, outcome, err := s.Engine.Reset(c.Request().Context(), app.ID, userName(c))
	if err != nil {
		return err
	}
	status := http.StatusOK
	if outcome == lifecycle.RequestNewAttempt {
		status = http.StatusAccepted
	}
	return s.writeApplication(c, status, app, grants)
}

// acknowledgeApplication ends the leaked grants of an application.
func (s *Server) acknowledgeApplication(c echo.Context) error {
	app, _, err := s.readApplication(c)
	if err != nil {
		return err
	}
	app, grants, err := s.Engine.Acknowledge(c.Request().Context(), app.ID, userName(c), func(g store.Grant) error {
		return s.Roles.MayActAsOwner(user(c), g.Owner, "acknowledging the leaked permission "+g.Permission)
	})
	if err != nil {
		return err
	}
	return s.writeApplication(c, http.StatusOK, app, grants)
}

// acknowledgeProvider ends the leaked grants of a provider.
func (s *Server) acknowledgeProvider(c echo.Context) error {
	if err := s.Roles.MayAdmin(user(c), "acknowledging the leaked grants of a provider"); err != nil {
		return err
	}
	n, err := s.Engine.AcknowledgeProvider(c.Request().Context(), c.Param("name"), userName(c))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, api.AcknowledgeResult{Acknowledged: n})
}

func (s *Server) revokePod(c echo.Context) error {
	var r api.RevokeRequest
	if err := decode(c, &r); err != nil {
		return err
	}
	if r.Cluster == "" {
		return badRequest("cluster", "required")
	}
	if r.PodUID == "" {
		return badRequest("podUID", "required")
	}
	if err := s.Roles.MayActFor(user(c), r.Cluster); err != nil {
		return err
	}
	ids, err := s.Engine.RevokePod(c.Request().Context(), r, userName(c))
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
	result := api.RevokeResult{}
	if result.Items, err = s.Engine.ListToAPI(c.Request().Context(), apps); err != nil {
		return err
	}
	if len(r.KeepIPs) == 0 {
		if result.OtherNames, err = s.Store.View(c.Request().Context()).OtherNames(r.Cluster, r.PodUID); err != nil {
			return err
		}
	}
	return c.JSON(http.StatusOK, result)
}

func (s *Server) writeApplication(c echo.Context, status int, app store.Application, grants []store.Grant) error {
	shown, err := s.Engine.ToAPI(c.Request().Context(), app, grants)
	if err != nil {
		return err
	}
	setETag(c, app.Version)
	return c.JSON(status, shown)
}
