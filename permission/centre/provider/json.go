package provider

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types/ref"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// toJSON converts a CEL value to the types that encoding/json decodes to.
func toJSON(v ref.Val) (any, error) {
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
