package altershielddouble

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// batch is a complete start of a batch; an override of nil removes a field,
// null() sets it to null.
func batch(override map[string]any) []byte {
	body := map[string]any{
		"tenantCode": "t", "changeSceneKey": "scene", "bizExecOrderId": "o", "platform": "breakwater",
		"executor": "e", "batchNo": 0, "totalBatchNum": 3, "totalBatchNumInChangePhase": 3,
		"changePhase": "prod_phase", "effectiveTargetType": "pod", "effectiveTargetLocations": []string{"p"},
	}
	return encoded(body, override)
}

func orderBody(override map[string]any) []byte {
	body := map[string]any{
		"tenantCode": "t", "changeSceneKey": "scene", "bizExecOrderId": "o", "platform": "breakwater",
		"changeTitle": "t", "creator": "c", "changePhases": []string{"prod_phase"}, "changeParamJson": "{}",
		"changeContents": []any{map[string]any{"contentType": map[string]any{"typeName": "x"}, "instanceName": "y"}},
		"executor":       "e", "finishTime": 1,
	}
	return encoded(body, override)
}

func nodeBody(id string, override map[string]any) []byte {
	body := map[string]any{
		"tenantCode": "t", "changeSceneKey": "scene", "bizExecOrderId": "o", "platform": "breakwater",
		"nodeId": id, "finishTime": 1, "defenseStage": "PRE", "finishState": "SUCCESS",
	}
	return encoded(body, override)
}

// null is a field with the value null.
func null() json.RawMessage { return json.RawMessage("null") }

func encoded(body, override map[string]any) []byte {
	maps.Copy(body, override)
	maps.DeleteFunc(body, func(_ string, v any) bool { return v == nil })
	out, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return out
}

func TestBindReportsViolations(t *testing.T) {
	for name, tc := range map[string]struct {
		action string
		body   []byte
		want   []string
	}{
		"a complete batch is valid":                   {actionStartBatch, batch(nil), nil},
		"a number may be a string":                    {actionStartBatch, batch(map[string]any{"batchNo": "3"}), nil},
		"an unknown field is ignored":                 {actionStartBatch, batch(map[string]any{"new": 1}), nil},
		"a missing batch number":                      {actionStartBatch, batch(map[string]any{"batchNo": nil}), []string{"batchNo: must not be null"}},
		"a missing total":                             {actionStartBatch, batch(map[string]any{"totalBatchNum": nil}), []string{"totalBatchNum: must not be null"}},
		"a missing total of the phase":                {actionStartBatch, batch(map[string]any{"totalBatchNumInChangePhase": nil}), []string{"totalBatchNumInChangePhase: must not be null"}},
		"a negative number":                           {actionStartBatch, batch(map[string]any{"batchNo": -1}), []string{"batchNo: must be greater than or equal to 0"}},
		"null for a number is 0":                      {actionStartBatch, batch(map[string]any{"batchNo": null()}), nil},
		"a null text":                                 {actionStartBatch, batch(map[string]any{"executor": null()}), []string{"executor: must not be null"}},
		"a blank text":                                {actionStartBatch, batch(map[string]any{"changePhase": "  "}), []string{"changePhase: must not be blank"}},
		"missing locations":                           {actionStartBatch, batch(map[string]any{"effectiveTargetLocations": nil}), []string{"effectiveTargetLocations: must not be null"}},
		"empty locations are valid":                   {actionStartBatch, batch(map[string]any{"effectiveTargetLocations": []string{}}), nil},
		"a null tag that has a default":               {actionStartBatch, batch(map[string]any{"isLastBatchTag": null()}), []string{"isLastBatchTag: must not be null"}},
		"an order id over 128 bytes":                  {actionStartBatch, batch(map[string]any{"bizExecOrderId": strings.Repeat("变", 43)}), []string{"bizExecOrderId: has 129 bytes, at most 128 are allowed"}},
		"a platform over 32 bytes":                    {actionStartBatch, batch(map[string]any{"platform": strings.Repeat("p", 33)}), []string{"platform: has 33 bytes, at most 32 are allowed"}},
		"a title of 256 bytes is valid":               {actionOpenOrder, orderBody(map[string]any{"changeTitle": strings.Repeat("t", 256)}), nil},
		"a title of 257 bytes":                        {actionOpenOrder, orderBody(map[string]any{"changeTitle": strings.Repeat("t", 257)}), []string{"changeTitle: has 257 bytes, at most 256 are allowed"}},
		"a creator over 128 bytes":                    {actionOpenOrder, orderBody(map[string]any{"creator": strings.Repeat("c", 129)}), []string{"creator: has 129 bytes, at most 128 are allowed"}},
		"an order without contents":                   {actionOpenOrder, orderBody(map[string]any{"changeContents": []any{}}), []string{"changeContents: must not be empty"}},
		"an order without parameters":                 {actionOpenOrder, orderBody(map[string]any{"changeParamJson": ""}), []string{"changeParamJson: must not be blank"}},
		"an order without a scenario is valid":        {actionOpenOrder, orderBody(map[string]any{"changeScenarioCode": nil}), nil},
		"several violations are sorted":               {actionOpenOrder, orderBody(map[string]any{"creator": nil, "changeTitle": nil}), []string{"changeTitle: must not be null", "creator: must not be null"}},
		"an event without an end":                     {actionEvent, orderBody(map[string]any{"finishTime": nil}), []string{"finishTime: must not be null"}},
		"a finish without a node":                     {actionFinish, nodeBody("", nil), []string{"nodeId: must not be blank"}},
		"a result that is not JSON":                   {actionFinish, nodeBody("n", map[string]any{"serviceResult": "{"}), []string{"serviceResult: is not JSON"}},
		"a finished order without a state":            {actionFinishOrder, nodeBody("n", map[string]any{"finishState": nil}), []string{"finishState: must not be null"}},
		"a retrieve without a stage":                  {actionRetrieve, nodeBody("n", map[string]any{"defenseStage": nil}), []string{"defenseStage: must not be null"}},
		"a message over 16384 bytes":                  {actionFinish, nodeBody("n", map[string]any{"msg": strings.Repeat("m", 16385)}), []string{"msg: has 16385 bytes, at most 16384 are allowed"}},
		"a synchronous start without a time is valid": {actionSyncStart, orderBody(nil), nil},
		"the start of an order is valid":              {actionStartOrder, batch(nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, wrong, err := bind(fieldsOf(tc.action), tc.body)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(append([]string{}, tc.want...), wrong); diff != "" {
				t.Errorf("-want +got: %s", diff)
			}
		})
	}
}

func TestBindCoerces(t *testing.T) {
	in, wrong, err := bind(fieldsOf(actionStartBatch), batch(map[string]any{
		"batchNo": "3", "totalBatchNum": 4.7, "totalBatchNumInChangePhase": null(), "emergency": "true",
		"startTime": "1700000000000", "executor": 7, "extInfo": map[string]any{"pods": []string{"a"}},
	}))
	if err != nil || len(wrong) > 0 {
		t.Fatal(err, wrong)
	}
	if in.num("batchNo") != 3 || in.num("totalBatchNum") != 4 || in.num("totalBatchNumInChangePhase") != 0 || !in.is("emergency") ||
		in.time("startTime").UnixMilli() != 1700000000000 || in.text("executor") != "7" || in.text("isLastBatchTag") != "not_last" {
		t.Errorf("%+v", in)
	}
}

func TestAnInvalidBodyIsUnreadable(t *testing.T) {
	for name, body := range map[string][]byte{
		"not JSON":                {'{'},
		"a list":                  []byte("[]"),
		"null":                    []byte("null"),
		"text for a number":       batch(map[string]any{"batchNo": "three"}),
		"a list for a text":       batch(map[string]any{"executor": []string{"e"}}),
		"a text for a list":       batch(map[string]any{"effectiveTargetLocations": "p"}),
		"a text for an object":    batch(map[string]any{"extInfo": "x"}),
		"a text for a truth":      batch(map[string]any{"emergency": "perhaps"}),
		"a text for a time":       batch(map[string]any{"startTime": "yesterday"}),
		"an object among strings": batch(map[string]any{"effectiveTargetLocations": []any{map[string]any{}}}),
	} {
		if _, _, err := bind(fieldsOf(actionStartBatch), body); !errors.Is(err, errUnreadable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := bind(fieldsOf(actionRetrieve), nodeBody("n", map[string]any{"defenseStage": "MID"})); !errors.Is(err, errUnreadable) {
		t.Errorf("an unknown stage: %v", err)
	}
}
