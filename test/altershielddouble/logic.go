package altershielddouble

import (
	"encoding/json"
	"fmt"
	"time"
)

// The steps of a release that a node can check.
const (
	stepOrder = "ORDER"
	stepBatch = "BATCH"
	// stepRelease is the synchronous check of an order. Its node has the type
	// of an order node, but a script must distinguish it.
	stepRelease = "RELEASE"
)

// order is a change order.
type order struct {
	id        string
	biz       string
	platform  string
	scene     string
	apps      []string
	emergency bool
	// namespace and workload are from changeParamJson. A Match uses them for a
	// check without extInfo.
	namespace, workload string
	// state is INIT, RUNNING, SUCCESS or the state of the finish.
	state string
}

// node is a check of an order or a batch, in both stages.
type node struct {
	id        string
	order     *order
	step      string
	state     State
	emergency bool
	batchNo   int64
	total     int64
	inPhase   int64
	start     time.Time
	finish    time.Time
	locations []string
	extInfo   map[string]any
	// passed has an entry for each judged stage.
	passed map[Stage]bool
	// due is the stage whose check is running or whose callback is not yet
	// sent.
	due Stage
}

// act executes an action. It returns the answer and the started check, if any.
// d.mu is held.
func (d *Double) act(action string, in form) (result, *check) {
	if scene := in.text("changeSceneKey"); !d.knowsScene(scene) {
		return rejected(codeArgument, "change scene not found, changeSceneKey="+scene), nil
	}
	key := orderKey{in.text("platform"), in.text("bizExecOrderId")}
	switch action {
	case actionOpenOrder:
		return d.openOrder(key, in), nil
	case actionEvent:
		return d.event(key, in), nil
	case actionSyncStart:
		return d.syncStart(key, in), nil
	case actionStartOrder:
		return d.start(key, stepOrder, in)
	case actionStartBatch:
		return d.start(key, stepBatch, in)
	case actionFinish:
		return d.finish(in)
	case actionResubmit:
		return d.resubmit(in)
	case actionRetrieve:
		return d.retrieve(in), nil
	default:
		return d.finishOrder(key, in), nil
	}
}

func (d *Double) openOrder(key orderKey, in form) result {
	if _, exists := d.orders[key]; exists {
		return rejected(codeExists, "duplicate bizExecOrderId: "+key.bizExecOrderID)
	}
	o, rejection := d.newOrder(key, in, "INIT")
	if rejection != nil {
		return *rejection
	}
	return done("create exec order success", orderDomain{OrderID: o.id, URL: urlOf("order", o.id)})
}

// newOrder stores an order. A creator over 56 bytes passes validation but does
// not fit its column.
func (d *Double) newOrder(key orderKey, in form, state string) (*order, *result) {
	if n := len(in.text("creator")); n > 56 {
		r := rejected(codeInternal, fmt.Sprintf("data too long for column 'creator': %d", n))
		return nil, &r
	}
	o := &order{
		id: d.newID("order"), biz: key.bizExecOrderID, platform: key.platform, scene: in.text("changeSceneKey"),
		apps: in.texts("changeApps"), emergency: in.text("changeScenarioCode") == "01", state: state,
	}
	var params struct {
		Namespace    string `json:"namespace"`
		WorkloadName string `json:"workloadName"`
	}
	if json.Unmarshal([]byte(in.text("changeParamJson")), &params) == nil {
		o.namespace, o.workload = params.Namespace, params.WorkloadName
	}
	d.orders[key] = o
	return o, nil
}

// event opens a finished order, unless the order exists.
func (d *Double) event(key orderKey, in form) result {
	if _, exists := d.orders[key]; exists {
		return done("", nil)
	}
	o, rejection := d.newOrder(key, in, "SUCCESS")
	if rejection != nil {
		return *rejection
	}
	return doneWithoutCode(orderDomain{OrderID: o.id, URL: urlOf("order", o.id)})
}

func (d *Double) start(key orderKey, step string, in form) (result, *check) {
	o, exists := d.orders[key]
	if !exists {
		return rejected(codeArgument, fmt.Sprintf("none order found for platform:%s, bizExecOrderId=%s", key.platform, key.bizExecOrderID)), nil
	}
	n := d.newNode(o, step, in)
	c := d.newCheck(n, Pre)
	skip := c.behaviour.SkipCheck
	return done("", nodeDomain{NodeID: n.id, SkipCheck: skip, URL: urlOf("node", n.id)}), c
}

// newNode creates a node for each call: starts are not idempotent.
func (d *Double) newNode(o *order, step string, in form) *node {
	n := &node{
		id: d.newID("node"), order: o, step: step, state: PreSubmit,
		emergency: o.emergency || in.is("emergency"),
		batchNo:   in.num("batchNo"), total: in.num("totalBatchNum"), inPhase: in.num("totalBatchNumInChangePhase"),
		start: in.time("startTime"), locations: in.texts("effectiveTargetLocations"),
		extInfo: in.object("extInfo"), passed: map[Stage]bool{},
	}
	o.state = "RUNNING"
	d.nodes[n.id] = n
	d.nodeList = append(d.nodeList, n)
	return n
}

func (d *Double) finish(in form) (result, *check) {
	n, exists := d.nodes[in.text("nodeId")]
	if !exists {
		return rejected(codeState, "node not found, nodeId:"+in.text("nodeId")), nil
	}
	if in.time("finishTime").IsZero() {
		// Published versions differ; this is the strictest.
		return rejected(codeInternal, "finishTime is null"), nil
	}
	f := finishIn(n.state)
	if !f.Accepted {
		return rejected(codeState, fmt.Sprintf("402:unsupported operation in %s, nodeId=%s", n.state, n.id)), nil
	}
	n.state, n.finish = f.Next, in.time("finishTime")
	answer := done("", nodeDomain{NodeID: n.id, SkipCheck: true, URL: urlOf("node", n.id)})
	if !f.Runs {
		return answer, d.repeatCallback(n)
	}
	if locations := in.texts("effectiveTargetLocations"); len(locations) > 0 {
		n.locations = locations
	}
	return answer, d.newCheck(n, Post)
}

// repeatCallback returns the check of a second finish, or nil. The check repeats
// the verdict of the first finish, at the rate Script.SecondFinish.
func (d *Double) repeatCallback(n *node) *check {
	pass, judged := n.passed[Post]
	if !judged || !d.progress.lucky(d.script.SecondFinish) {
		return nil
	}
	c := d.newCheck(n, Post)
	c.behaviour = Behaviour{Verdict: "fail", Ending: Judged}
	if pass {
		c.behaviour.Verdict = "pass"
	}
	return c
}

// resubmit runs the PRE check of a node again, if it has ended.
func (d *Double) resubmit(in form) (result, *check) {
	n, exists := d.nodes[in.text("nodeId")]
	switch {
	case !exists:
		return rejected(codeState, "node not found, nodeId:"+in.text("nodeId")), nil
	case !resubmits(n.state):
		return rejected(codeState, fmt.Sprintf("402:unsupported operation in %s, nodeId=%s", n.state, n.id)), nil
	}
	n.state = PreSubmit
	delete(n.passed, Pre)
	return done("", nodeDomain{NodeID: n.id, URL: urlOf("node", n.id)}), d.newCheck(n, Pre)
}

// retrieve always returns finished. It returns fail unless the stage was judged
// a pass. So it returns fail during the check, and after a timeout or exception.
func (d *Double) retrieve(in form) result {
	n, exists := d.nodes[in.text("nodeId")]
	if !exists {
		return rejected(codeState, "node not found, nodeId:"+in.text("nodeId"))
	}
	pass := n.passed[Stage(in.text("defenseStage"))]
	v := verdict{AllFinish: true, CheckPass: pass, Rules: []Rule{}, Verdict: "fail"}
	if pass {
		v.Verdict = "pass"
	}
	return done("", progressDomain{Finished: true, Verdict: v, URL: urlOf("node", n.id)})
}

func (d *Double) finishOrder(key orderKey, in form) result {
	o, exists := d.orders[key]
	if !exists {
		return rejected(codeArgument, "changeOrder not found, bizExecOrderId="+key.bizExecOrderID)
	}
	o.state = in.text("finishState")
	return done("change finish success", nil)
}

func urlOf(kind, id string) string { return "/" + kind + "/" + id }

// pods returns the pods of the batch: those of extInfo, or the locations.
func (n *node) pods() []string {
	list, _ := n.extInfo["pods"].([]any)
	var out []string
	for _, each := range list {
		if s, ok := scalar(each); ok {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return n.locations
	}
	return out
}

func (n *node) facts(stage Stage) facts {
	namespace, _ := n.extInfo["namespace"].(string)
	workload, _ := n.extInfo["workloadName"].(string)
	if n.extInfo == nil {
		namespace, workload = n.order.namespace, n.order.workload
	}
	return facts{
		Stage: stage, Step: n.step, BatchNo: n.batchNo, Pods: n.pods(),
		Order: n.order.biz, Namespace: namespace, Workload: workload,
	}
}

func (n *node) ruleInput(stage Stage) RuleInput {
	return RuleInput{
		Stage: stage, Apps: n.order.apps, StartTime: n.start, FinishTime: n.finish, BatchNo: n.batchNo,
		TotalBatchNum: n.total, TotalBatchNumInChangePhase: n.inPhase, ExtInfo: n.extInfo,
	}
}
