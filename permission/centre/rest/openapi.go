package rest

import (
	_ "embed" // for openapi.json
	"net/http"

	"github.com/labstack/echo/v4"
)

// document is the OpenAPI document; openapigen writes it (make generate).
//
//go:embed openapi.json
var document []byte

func openAPI(c echo.Context) error { return c.JSONBlob(http.StatusOK, document) }
