package centre

import (
	"net/http"
	"testing"
)

func validateRequest(testing.TB, *http.Request) {}

func validateAnswer(testing.TB, *http.Request, *http.Response, []byte) {}
