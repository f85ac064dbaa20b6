package rest

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
)

// get shows an application; with wait it does so once its version is above
// the given one, or when the time is up.
func (s *Server) get(c echo.Context) error {
	app, grants, err := s.visible(c)
	if err != nil {
		return err
	}
	wait, version, err := waiting(c)
	if err != nil {
		return err
	}
	if wait > 0 && app.Version <= version {
		if err := s.await(c, app.ID, version, wait); err != nil {
			return err
		}
		if app, grants, err = s.visible(c); err != nil {
			return err
		}
	}
	return s.show(c, http.StatusOK, app, grants)
}

func waiting(c echo.Context) (wait time.Duration, version int64, err error) {
	if text := c.QueryParam("wait"); text != "" {
		if wait, err = time.ParseDuration(text); err != nil || wait < 0 {
			return 0, 0, bad("wait", fmt.Sprintf("%q; must be like 30s, at most %s", text, maxWait))
		}
	}
	if text := c.QueryParam("version"); text != "" {
		if version, err = strconv.ParseInt(text, 10, 64); err != nil {
			return 0, 0, bad("version", "must be a number")
		}
	}
	return min(wait, maxWait), version, nil
}

// await returns when the application has another version, or time is up, or
// nobody wants to know.
func (s *Server) await(c echo.Context, id string, version int64, wait time.Duration) error {
	timer := s.Clock.NewTimer(wait)
	defer timer.Stop()
	for {
		changed, stop := s.Hub.Watch(id)
		// Looked at after the watch began, so that no change is missed.
		now, err := s.Store.View(c.Request().Context()).Version(id)
		if err != nil || now > version {
			stop()
			return err
		}
		select {
		case <-changed:
		case <-timer.C():
			stop()
			return nil
		case <-s.Stopping:
			stop()
			return nil
		case <-c.Request().Context().Done():
			stop()
			return c.Request().Context().Err()
		}
	}
}
