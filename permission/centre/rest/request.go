package rest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/access"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

const userKey = "user"

// authenticate finds out who asks, or answers 401.
func (s *Server) authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		token, ok := strings.CutPrefix(c.Request().Header.Get(echo.HeaderAuthorization), "Bearer ")
		if !ok || token == "" {
			return unauthorized("you are nobody: the request has no Authorization: Bearer <token>")
		}
		var failed error
		for _, a := range s.Authenticators {
			user, ok, err := a.Authenticate(c.Request().Context(), token)
			if err != nil {
				failed = err
				continue
			}
			if ok {
				c.Set(userKey, user)
				return next(c)
			}
		}
		if failed != nil {
			return fmt.Errorf("authenticate: %w", failed)
		}
		return unauthorized("you are nobody: the token is not valid here (expired, of another audience, or unknown)")
	}
}

func unauthorized(message string) error {
	return problem{http.StatusUnauthorized, api.Error{Reason: "Unauthorized", Message: message}}
}

func user(c echo.Context) access.User {
	u, _ := c.Get(userKey).(access.User)
	return u
}

func who(c echo.Context) string { return user(c).Name }

// decode reads a JSON body strictly: a field that is not known is a mistake.
func decode(c echo.Context, to any) error {
	d := json.NewDecoder(c.Request().Body)
	d.DisallowUnknownFields()
	err := d.Decode(to)
	if err == nil && d.More() {
		err = errors.New("more than one JSON value")
	}
	if err == nil {
		return nil
	}
	var wrong *json.UnmarshalTypeError
	var routing *echo.HTTPError
	switch {
	case errors.As(err, &routing):
		return routing
	case errors.As(err, &wrong):
		// Go's names of embedded structs are nobody's business.
		field := strings.TrimPrefix(strings.TrimPrefix(wrong.Field, "Meta."), "ApplicationRequest.")
		return bad(field, fmt.Sprintf("is %s; must be %s", wrong.Value, wrong.Type))
	case errors.Is(err, io.EOF):
		return bad("body", "is empty; must be JSON")
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		field := strings.Trim(strings.TrimPrefix(err.Error(), "json: unknown field "), `"`)
		return bad(field, "is no field here")
	default:
		return bad("body", "is no JSON: "+err.Error())
	}
}

// page reads limit, continue and search.
func page(c echo.Context) (store.Page, error) {
	p := store.Page{Limit: 100, Search: c.QueryParam("search")}
	if text := c.QueryParam("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 500 {
			return p, bad("limit", fmt.Sprintf("%q; must be from 1 to 500", text))
		}
		p.Limit = n
	}
	after, err := base64.RawURLEncoding.DecodeString(c.QueryParam("continue"))
	if err != nil {
		return p, bad("continue", "must be what an answer gave")
	}
	p.After = string(after)
	return p, nil
}

// following is continue for the next page, when there may be one.
func following(n, limit int, last string) string {
	if n < limit {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString([]byte(last))
}

// ifMatch reads the version that a change is for.
func ifMatch(c echo.Context) (int64, error) {
	text := c.Request().Header.Get("If-Match")
	if text == "" {
		return 0, problem{http.StatusPreconditionRequired, api.Error{Reason: "PreconditionRequired",
			Message: "If-Match is needed, with the ETag of the object as it was read"}}
	}
	version, err := strconv.ParseInt(strings.Trim(text, `"`), 10, 64)
	if err != nil {
		return 0, store.ErrChanged
	}
	return version, nil
}

func setETag(c echo.Context, version int64) {
	c.Response().Header().Set("ETag", fmt.Sprintf(`"%d"`, version))
}
