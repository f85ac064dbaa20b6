package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// decodeJSON decodes JSON as encoding/json does, apart from numbers: see numbers. It returns
// nil if the text is not JSON.
func decodeJSON(text []byte) any {
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if !json.Valid(text) || d.Decode(&v) != nil {
		return nil
	}
	return numbers(v)
}

// numbers returns a JSON value with its json.Numbers as int64, uint64 or float64, which CEL
// knows. A float64 would change the digits of a large integer.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		return number(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = numbers(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, field := range v {
			out[name] = numbers(field)
		}
		return out
	default:
		return v
	}
}

// number returns an integer as int64, or as uint64 if it is too large, and any other number as
// float64, which is infinite if the number is too large.
func number(n json.Number) any {
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return i
	}
	if u, err := strconv.ParseUint(n.String(), 10, 64); err == nil {
		return u
	}
	f, _ := n.Float64()
	return f
}

// toJSON converts a CEL value to the types that decodeJSON returns.
func toJSON(v ref.Val) (any, error) {
	switch v := v.(type) {
	case types.Int:
		return int64(v), nil
	case types.Uint:
		return uint64(v), nil
	case traits.Lister:
		out := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			item, err := toJSON(it.Next())
			if err != nil {
				return nil, err
			}
			out = append(out, item)
		}
		return out, nil
	case traits.Mapper:
		out := map[string]any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			name, ok := key.(types.String)
			if !ok {
				return nil, fmt.Errorf("a map with a key of type %s has no JSON representation", key.Type().TypeName())
			}
			field, err := toJSON(v.Get(key))
			if err != nil {
				return nil, err
			}
			out[string(name)] = field
		}
		return out, nil
	}
	// protojson would encode a large integer as a string.
	out, err := v.ConvertToNative(reflect.TypeFor[*structpb.Value]())
	if err != nil {
		return nil, fmt.Errorf("type %s has no JSON representation", v.Type().TypeName())
	}
	text, err := protojson.Marshal(out.(*structpb.Value))
	if err != nil {
		return nil, err
	}
	var value any
	return value, json.Unmarshal(text, &value)
}
