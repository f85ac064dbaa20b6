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

// authenticate sets the user of the request, or answers 401.
func (s *Server) authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		token, ok := strings.CutPrefix(c.Request().Header.Get(echo.HeaderAuthorization), "Bearer ")
		if !ok || token == "" {
			return unauthorized("unauthenticated: the request needs header Authorization: Bearer <token>")
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
		return unauthorized("unauthenticated: the token is not valid (expired, of another audience, or unknown)")
	}
}

func unauthorized(message string) error {
	return apiError{http.StatusUnauthorized, api.Error{Reason: "Unauthorized", Message: message}}
}

func user(c echo.Context) access.User {
	u, _ := c.Get(userKey).(access.User)
	return u
}

func userName(c echo.Context) string { return user(c).Name }

// decode reads a JSON body and rejects unknown fields.
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
	var typeErr *json.UnmarshalTypeError
	var routing *echo.HTTPError
	switch {
	case errors.As(err, &routing):
		return routing
	case errors.As(err, &typeErr):
		// The API has no fields for Go's embedded structs.
		field := strings.TrimPrefix(strings.TrimPrefix(typeErr.Field, "Meta."), "ApplicationRequest.")
		return badRequest(field, fmt.Sprintf("is a JSON %s; must be of type %s", typeErr.Value, typeErr.Type))
	case errors.Is(err, io.EOF):
		return badRequest("body", "is empty; must be JSON")
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		field := strings.Trim(strings.TrimPrefix(err.Error(), "json: unknown field "), `"`)
		return badRequest(field, "is not a field of this object; remove it")
	default:
		return badRequest("body", "is not valid JSON: "+err.Error())
	}
}

// page reads the query parameters limit, continue and search.
func page(c echo.Context) (store.Page, error) {
	p := store.Page{Limit: 100, Search: c.QueryParam("search")}
	if text := c.QueryParam("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 500 {
			return p, badRequest("limit", fmt.Sprintf("is %q; must be from 1 to 500", text))
		}
		p.Limit = n
	}
	after, err := base64.RawURLEncoding.DecodeString(c.QueryParam("continue"))
	if err != nil {
		return p, badRequest("continue", "must be the value of continue in the previous page")
	}
	p.After = string(after)
	return p, nil
}

// continueToken returns the token of the next page; empty after the last page.
func continueToken(n, limit int, last string) string {
	if n < limit {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString([]byte(last))
}

// ifMatch reads the version that the request changes.
func ifMatch(c echo.Context) (int64, error) {
	text := c.Request().Header.Get("If-Match")
	if text == "" {
		return 0, apiError{http.StatusPreconditionRequired, api.Error{Reason: "PreconditionRequired",
			Message: "header If-Match is required: the ETag of the object that was read"}}
	}
	version, err := strconv.ParseInt(strings.Trim(text, `"`), 10, 64)
	if err != nil {
		return 0, store.ErrConflict
	}
	return version, nil
}

func setETag(c echo.Context, version int64) {
	c.Response().Header().Set("ETag", fmt.Sprintf(`"%d"`, version))
}
