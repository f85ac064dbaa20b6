package rest

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
)

// getApplication answers with an application. With query parameter wait, it answers when the
// version is above parameter version, when wait has passed, or when the process stops.
func (s *Server) getApplication(c echo.Context) error {
	app, grants, err := s.readApplication(c)
	if err != nil {
		return err
	}
	wait, version, err := parseWait(c)
	if err != nil {
		return err
	}
	if wait > 0 && app.Version <= version {
		if err := s.awaitVersion(c, app.ID, version, wait); err != nil {
			return err
		}
		if app, grants, err = s.readApplication(c); err != nil {
			return err
		}
	}
	return s.writeApplication(c, http.StatusOK, app, grants)
}

func parseWait(c echo.Context) (wait time.Duration, version int64, err error) {
	if text := c.QueryParam("wait"); text != "" {
		if wait, err = time.ParseDuration(text); err != nil || wait < 0 {
			return 0, 0, badRequest("wait", fmt.Sprintf("is %q; must be a duration such as 30s, at most %s", text, maxWait))
		}
	}
	if text := c.QueryParam("version"); text != "" {
		if version, err = strconv.ParseInt(text, 10, 64); err != nil {
			return 0, 0, badRequest("version", "must be an integer")
		}
	}
	return min(wait, maxWait), version, nil
}

// awaitVersion returns when the version is above the given version, when wait has
// passed, or when the request or the server ends.
func (s *Server) awaitVersion(c echo.Context, id string, version int64, wait time.Duration) error {
	timer := s.Clock.NewTimer(wait)
	defer timer.Stop()
	// The subscription begins before the read, so that no change is missed.
	changed, unsubscribe := s.Notifier.Subscribe(id)
	defer unsubscribe()
	for {
		now, err := s.Store.View(c.Request().Context()).ApplicationVersion(id)
		if err != nil || now > version {
			return err
		}
		select {
		case <-changed:
		case <-timer.C():
			return nil
		case <-s.Stopping:
			return nil
		case <-c.Request().Context().Done():
			return c.Request().Context().Err()
		}
	}
}
