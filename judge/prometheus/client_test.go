package prometheus

import (
	"strings"
	"testing"
)

func TestALongQueryOfAMessageIsCutBetweenTwoCharacters(t *testing.T) {
	begin := strings.Repeat("a", 299)
	if got := shorten(begin + "é"); got != begin+"…" {
		t.Errorf("the end is %q", got[290:])
	}
}

func TestAnAddressIsAURLAndItsErrorHasNoPassword(t *testing.T) {
	for address, valid := range map[string]bool{
		"http://127.0.0.1:9090":                true,
		"https://prometheus.monitoring/prefix": true,
		"https://user:p%2Fhidden@host":         true,
		"":                                     false,
		"prometheus:9090":                      false,
		"ftp://host":                           false,
		"http:///hidden":                       false,
		"user:hidden@host:9090":                false,
		"https://user:p%zhidden@host":          false,
		"https://user:p/hidden@host":           false,
		"https://user:1/hidden@host":           false,
		"https://user:p@ss/hidden@host":        false,
		"https://user:1#hidden@host":           false,
	} {
		_, err := New(address, 0, nil)
		if (err == nil) != valid || err != nil && strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: got %v, want valid %t and no password", address, err, valid)
		}
	}
}
