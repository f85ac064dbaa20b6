package rest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/breakwater-dev/breakwater/internal/auth"
	"github.com/breakwater-dev/breakwater/internal/jsonfields"
	"github.com/breakwater-dev/breakwater/internal/text"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/access"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

const userKey = "user"

// authenticate sets the user of the request. It answers 401 without a valid token, and 503 if
// the token could not be checked.
func (s *Server) authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		token := auth.BearerToken(c.Request())
		if token == "" {
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

// decode reads a JSON body. It rejects unknown fields and the character NUL, which
// PostgreSQL cannot store.
func decode(c echo.Context, to any) error {
	raw, err := io.ReadAll(c.Request().Body)
	if err != nil {
		return err // the body is too large, or the connection failed
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err = d.Decode(to)
	if _, end := d.Token(); err == nil && end != io.EOF {
		// Token, because d.More reports false before a stray ] or }.
		err = errors.New("more than one JSON value")
	}
	if err == nil && escapesNUL(raw) {
		err = errors.New("a string contains the character NUL")
	}
	if err == nil {
		return nil
	}
	var typeErr *json.UnmarshalTypeError
	unknown, isUnknown := jsonfields.Unknown(err)
	switch {
	case errors.As(err, &typeErr):
		// The API has no fields for Go's embedded structs.
		field := strings.TrimPrefix(strings.TrimPrefix(typeErr.Field, "Meta."), "ApplicationRequest.")
		// The value may be a number of any length.
		return badRequest(fieldOrBody(field), fmt.Sprintf("is a JSON %s; must be of type %s", text.Truncate(typeErr.Value, maxQuoted), typeErr.Type))
	case errors.Is(err, io.EOF):
		return badRequest("body", "is empty; must be JSON")
	case isUnknown:
		return badRequest(fieldOrBody(unknown), "is not a field of this object; remove it")
	default:
		return badRequest("body", "is not valid JSON: "+text.Truncate(err.Error(), maxQuoted))
	}
}

// maxQuoted bounds a part of a request that an error quotes, in bytes.
const maxQuoted = 253

// fieldOrBody returns the name of a field for an error. The body itself has none.
func fieldOrBody(field string) string {
	if field == "" {
		return "body"
	}
	return text.Truncate(field, maxQuoted)
}

// escapesNUL reports whether a string of valid JSON contains NUL, which JSON always
// escapes.
func escapesNUL(raw []byte) bool {
	for {
		before, after, found := bytes.Cut(raw, []byte(`\u0000`))
		if !found {
			return false
		}
		if backslashes := len(before) - len(bytes.TrimRight(before, `\`)); backslashes%2 == 0 {
			return true
		}
		raw = after
	}
}

// storableQuery rejects a path or a query with a character that PostgreSQL cannot
// compare: NUL or invalid UTF-8. The answer would be 503, as if the store had failed.
func storableQuery(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		for name, values := range c.QueryParams() {
			for _, value := range values {
				if !storable(value) {
					return badRequest(fieldOrBody(strings.ToValidUTF8(name, "")), "contains NUL or invalid UTF-8")
				}
			}
		}
		if !storable(c.Request().URL.Path) {
			return badRequest("path", "contains NUL or invalid UTF-8")
		}
		return next(c)
	}
}

func storable(value string) bool { return utf8.ValidString(value) && !strings.ContainsRune(value, 0) }

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
	if err != nil || !storable(string(after)) {
		return p, badRequest("continue", "must be the value of continue in the previous page")
	}
	p.After = string(after)
	return p, nil
}

// continueToken returns the token of the next page; empty if this page is not full. After a
// full last page follows an empty one.
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
