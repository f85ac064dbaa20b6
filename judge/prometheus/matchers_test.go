package prometheus

import "testing"

func TestAMatcherIsParsedAsPrometheusDoes(t *testing.T) {
	for text, c := range map[string]struct {
		want  string // empty: an error
		match map[string]string
	}{
		`version="v2"`:                  {`version="v2"`, map[string]string{"version": "v2"}},
		`{version="v2"}`:                {`version="v2"`, map[string]string{"version": "v2"}},
		` a = "x" , b=~"p-.*|q" , `:     {`a="x",b=~"p-.*|q"`, map[string]string{"a": "x", "b": "p-1"}},
		`a!="x",b!~"y.*"`:               {`a!="x",b!~"y.*"`, map[string]string{"a": "z"}},
		`a='it"s'`:                      {`a="it\"s"`, map[string]string{"a": `it"s`}},
		"a=`C:\\d`":                     {`a="C:\\d"`, map[string]string{"a": `C:\d`}},
		`a="comma, and } brace"`:        {`a="comma, and } brace"`, map[string]string{"a": "comma, and } brace"}},
		`version=v2`:                    {},
		`version="v2" other="v1"`:       {},
		`a=~"("`:                        {},
		`http_requests_total{a="b"}`:    {},
		`a="b"} or on() vector(1) or {`: {},
	} {
		got, err := ParseMatchers(text)
		if (err != nil) != (c.want == "") {
			t.Errorf("%s: error %v", text, err)
			continue
		}
		if err == nil && (got.String() != c.want || !got.Match(c.match)) {
			t.Errorf("%s: %s, matches %v: %t", text, got, c.match, got.Match(c.match))
		}
	}
}

func TestTwoMatchersAreOneQueryIfOneLabelDiffers(t *testing.T) {
	for _, c := range []struct {
		a, b, want string
	}{
		{`ns="a",pod=~"x|y"`, `ns="a",pod=~"z"`, `ns="a",pod=~"x|y|z"`},
		{`version="1.2"`, `version="1.1"`, `version=~"1\\.2|1\\.1"`},
		{`ns="a",pod="x"`, `ns="b",pod="y"`, ""},
		{`version!="1"`, `version="1"`, ""},
		{`a="x"`, `b="x"`, ""},
	} {
		a, _ := ParseMatchers(c.a)
		b, _ := ParseMatchers(c.b)
		got, ok := Union(a, b)
		if ok != (c.want != "") || got.String() != c.want {
			t.Errorf("union of %s and %s: %s, %t, want %s", c.a, c.b, got, ok, c.want)
		}
	}
}

func TestAConditionOrEmptyMatchesSeriesWithoutTheLabel(t *testing.T) {
	for text, want := range map[string]string{
		`ns="a.b"`:    `ns=~"(?:a\\.b)?"`,
		`ns=~"a|b.*"`: `ns=~"(?:a|b.*)?"`,
		`ns!="a"`:     `ns!="a"`,
		`ns=""`:       `ns=""`,
		`ns!=""`:      `ns!=""`,
	} {
		m, err := ParseMatchers(text)
		if err != nil {
			t.Fatal(err)
		}
		got := m[0].OrEmpty()
		if got.String() != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		if text != `ns!=""` && !got.Matches(nil) {
			t.Errorf("%s does not match a series without the label", got)
		}
	}
}
