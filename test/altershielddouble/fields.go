package altershielddouble

// kind is the type of a field in the server's Java class.
type kind int

const (
	kindText kind = iota
	kindInt
	kindBool
	// kindTime is epoch milliseconds or an RFC 3339 string.
	kindTime
	// kindTexts is a list of strings.
	kindTexts
	kindMap
	kindObjects
)

// field is one field of a request.
type field struct {
	name string
	kind kind
	// limit is the maximum number of UTF-8 bytes of a text; 0 is no limit.
	limit int
	// required: a missing, null or (for a text) blank value is a 101. A number
	// must be at least 0; null is 0, as for a Java int.
	required bool
	// implied is the value of a missing field. If the field is required, null
	// and blank are still a 101.
	implied any
	// json: a text must be JSON.
	json bool
	// values: a text must be one of these, or the body cannot be read: HTTP 400.
	values []string
}

// The actions, the last part of the path.
const (
	actionOpenOrder   = "submitChangeExecOrder"
	actionStartOrder  = "submitChangeExecOrderStartNotify"
	actionStartBatch  = "submitChangeExecBatchStartNotify"
	actionFinish      = "submitChangeFinishNotify"
	actionResubmit    = "resubmitChangeStartNotifyAction"
	actionRetrieve    = "retrieveChangeCheck"
	actionFinishOrder = "finishChangeExecOrderAction"
	actionSyncStart   = "submitAndStartChangeExecOrder"
	actionEvent       = "submitChangeEventAction"
)

// fieldsOf returns the fields of an action, or nil for an unknown action. Other
// fields are ignored, as in the server.
func fieldsOf(action string) []field {
	identity := []field{
		{name: "tenantCode", required: true},
		{name: "changeSceneKey", required: true, limit: 256},
		{name: "bizExecOrderId", required: true, limit: 128},
		{name: "platform", required: true, limit: 32},
	}
	order := []field{
		{name: "changeTitle", required: true, limit: 256},
		{name: "changeUrl", limit: 512},
		{name: "creator", required: true, limit: 128},
		{name: "changeScenarioCode", required: true, implied: "00"},
		{name: "changePhases", kind: kindTexts, required: true},
		{name: "changeContents", kind: kindObjects, required: true},
		{name: "changeParamJson", required: true},
		{name: "changeApps", kind: kindTexts},
	}
	executed := []field{
		{name: "executor", required: true, limit: 128},
		{name: "startTime", kind: kindTime},
		{name: "extensionInfo", kind: kindMap},
	}
	start := join(executed, []field{{name: "emergency", kind: kindBool}})
	node := field{name: "nodeId", required: true}
	switch action {
	case actionOpenOrder:
		return join(identity, order)
	case actionSyncStart:
		return join(identity, order, executed, []field{{name: "checkTimeout", kind: kindInt, implied: int64(-1)}})
	case actionEvent:
		return join(identity, order, executed, []field{{name: "finishTime", kind: kindTime, required: true}})
	case actionStartOrder:
		return join(identity, start)
	case actionStartBatch:
		return join(identity, start, []field{
			{name: "batchNo", kind: kindInt, required: true},
			{name: "totalBatchNum", kind: kindInt, required: true},
			{name: "totalBatchNumInChangePhase", kind: kindInt, required: true},
			{name: "isLastBatchTag", required: true, implied: "not_last"},
			{name: "isLastBatchInChangePhaseTag", required: true, implied: "not_last"},
			{name: "changePhase", required: true},
			{name: "effectiveTargetType", required: true},
			{name: "effectiveTargetLocations", kind: kindTexts, required: true},
			{name: "extInfo", kind: kindMap},
		})
	case actionFinish:
		return join(identity, []field{
			node,
			{name: "success", kind: kindBool, implied: true},
			{name: "msg", limit: 16384},
			{name: "serviceResult", json: true},
			{name: "changeResultJsn", json: true},
			{name: "finishTime", kind: kindTime},
			{name: "effectiveTargetLocations", kind: kindTexts},
		})
	case actionResubmit:
		return join(identity, []field{node})
	case actionRetrieve:
		return join(identity, []field{node, {name: "defenseStage", required: true, values: []string{"PRE", "POST"}}})
	case actionFinishOrder:
		return join(identity, []field{
			{name: "finishState", required: true},
			{name: "msg", limit: 16384},
			{name: "changeResultJsn", json: true},
			{name: "finishTime", kind: kindTime},
		})
	default:
		return nil
	}
}

func join(parts ...[]field) []field {
	var out []field
	for _, part := range parts {
		out = append(out, part...)
	}
	return out
}
