package altershielddouble

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// form is a request after binding: the fields of the table with typed values.
type form map[string]any

func (f form) text(name string) string           { v, _ := f[name].(string); return v }
func (f form) num(name string) int64             { v, _ := f[name].(int64); return v }
func (f form) is(name string) bool               { v, _ := f[name].(bool); return v }
func (f form) texts(name string) []string        { v, _ := f[name].([]string); return v }
func (f form) time(name string) time.Time        { v, _ := f[name].(time.Time); return v }
func (f form) object(name string) map[string]any { v, _ := f[name].(map[string]any); return v }

// errUnreadable is returned for a body that the server cannot bind to its
// class. It is the only mistake that is answered with HTTP 400.
var errUnreadable = errors.New("body is not readable")

// bind parses a body as the server does: scalars are coerced ("3" is 3), null
// is absent, unknown fields are ignored. The second result lists the violations
// for a 101, sorted; the error is errUnreadable.
func bind(fields []field, body []byte) (form, []string, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(body, &raw); err != nil || raw == nil {
		return nil, nil, errUnreadable
	}
	out, wrong := form{}, []string{}
	for _, f := range fields {
		value, present := raw[f.name]
		if !present {
			out.set(f.name, f.implied)
		} else if err := out.read(f, value); err != nil {
			return nil, nil, err
		}
		if text := out.check(f); text != "" {
			wrong = append(wrong, f.name+": "+text)
		}
	}
	slices.Sort(wrong)
	return out, wrong, nil
}

func (f form) set(name string, value any) {
	if value != nil {
		f[name] = value
	}
}

// read coerces one value into the form.
func (f form) read(field field, raw json.RawMessage) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return errUnreadable
	}
	if v == nil {
		if field.kind == kindInt {
			f[field.name] = int64(0)
		}
		return nil
	}
	value, ok := coerce(field, v)
	if !ok {
		return fmt.Errorf("%w: %s", errUnreadable, field.name)
	}
	f[field.name] = value
	return nil
}

func coerce(field field, v any) (any, bool) {
	switch field.kind {
	case kindText:
		s, ok := scalar(v)
		return s, ok && (len(field.values) == 0 || slices.Contains(field.values, s))
	case kindInt:
		return whole(v)
	case kindBool:
		return truth(v)
	case kindTime:
		return moment(v)
	case kindTexts:
		return texts(v)
	case kindMap:
		m, ok := v.(map[string]any)
		return m, ok
	default:
		list, ok := v.([]any)
		return list, ok
	}
}

func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	default:
		return "", false
	}
}

// whole converts numbers and numeric strings to integers and truncates
// fractions.
func whole(v any) (int64, bool) {
	s, ok := scalar(v)
	if _, isBool := v.(bool); !ok || isBool {
		return 0, false
	}
	s = strings.TrimSpace(s)
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, true
	}
	if _, isNumber := v.(json.Number); !isNumber {
		return 0, false
	}
	n, err := strconv.ParseFloat(s, 64)
	return int64(n), err == nil
}

func truth(v any) (bool, bool) {
	switch v := v.(type) {
	case bool:
		return v, true
	case string:
		b, err := strconv.ParseBool(strings.ToLower(strings.TrimSpace(v)))
		return b, err == nil
	case json.Number:
		return v.String() != "0", true
	default:
		return false, false
	}
}

func moment(v any) (time.Time, bool) {
	if ms, ok := whole(v); ok {
		return time.UnixMilli(ms), true
	}
	s, _ := v.(string)
	t, err := time.Parse(time.RFC3339, s)
	return t, err == nil
}

func texts(v any) ([]string, bool) {
	list, ok := v.([]any)
	out := make([]string, 0, len(list))
	for _, each := range list {
		s, isText := scalar(each)
		ok = ok && isText
		out = append(out, s)
	}
	return out, ok
}

// check returns the violation of a bound field, or "".
func (f form) check(field field) string {
	value, present := f[field.name]
	switch v := value.(type) {
	case string:
		switch {
		case field.required && strings.TrimSpace(v) == "":
			return "must not be blank"
		case field.limit > 0 && len(v) > field.limit:
			return fmt.Sprintf("has %d bytes, at most %d are allowed", len(v), field.limit)
		case field.json && strings.TrimSpace(v) != "" && !json.Valid([]byte(v)):
			return "is not JSON"
		}
	case int64:
		if field.required && v < 0 {
			return "must be greater than or equal to 0"
		}
	case []any:
		if field.required && len(v) == 0 {
			return "must not be empty"
		}
	}
	if field.required && !present {
		return "must not be null"
	}
	return ""
}
