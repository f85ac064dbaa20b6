package provider

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types/ref"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// native turns a value of CEL into what encoding/json makes of JSON.
func native(v ref.Val) (any, error) {
	out, err := v.ConvertToNative(reflect.TypeFor[*structpb.Value]())
	if err != nil {
		return nil, fmt.Errorf("%s has no JSON", v.Type().TypeName())
	}
	text, err := protojson.Marshal(out.(*structpb.Value))
	if err != nil {
		return nil, err
	}
	var value any
	return value, json.Unmarshal(text, &value)
}
