package altershielddouble

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// maxBody is the maximum size of a call's body in bytes.
const maxBody = 4 << 20

const exePath = "/openapi/v1/exe/"

func (d *Double) routes() {
	d.mux = http.NewServeMux()
	d.mux.HandleFunc("POST "+exePath+"{action}", d.serve)
	d.adminAPI()
	d.control()
}

// reply is a response or a closed connection.
type reply struct {
	status int
	html   bool
	body   []byte
	reset  bool
	result result
	node   string
	check  *check
}

// serve handles one call in this order: fault, logic, answer, check. So a fault
// can happen before or after the call is executed.
func (d *Double) serve(w http.ResponseWriter, r *http.Request) {
	action := r.PathValue("action")
	entry := CallEntry{Time: d.options.Clock.Now(), Action: action}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "body is too long or incomplete", http.StatusBadRequest)
		return
	}
	if json.Valid(body) {
		entry.Body = body
	}
	d.mu.Lock()
	fault, ctx := d.script.fault(d.progress, action, body), d.ctx
	d.mu.Unlock()

	out := d.answer(ctx, r, action, body, fault)
	d.wait(ctx, out.result.after) // returns at once if the double is closed
	if fault != nil {
		entry.Fault = fault.Fault
	}
	entry.Order, entry.Node = idsOf(body)
	if out.node != "" {
		entry.Node = out.node
	}
	entry.Status, entry.Code, entry.Done = out.status, out.result.code(), d.options.Clock.Now()
	if out.result.Msg != nil {
		entry.Msg = *out.result.Msg
	}
	d.recordCall(entry)
	if out.check != nil {
		// Runs also after the panic that closes a connection.
		defer close(out.check.answered)
		<-out.check.delivered
		out.check.since = d.options.Clock.Now()
	}
	out.write(w)
}

// answer executes a call with its fault. A slow call is executed even if the
// caller has disconnected, as in a real server. The reply has the started check
// only if the check must wait for the answer.
func (d *Double) answer(ctx context.Context, r *http.Request, action string, body []byte, fault *FaultRule) reply {
	if fault == nil {
		return d.begin(d.process(r.Header, action, body))
	}
	if !fault.After {
		if fault.Fault != FaultSlow {
			return fault.reply(r.URL.Path)
		}
		if !d.wait(ctx, fault.Delay.Duration) {
			return reply{reset: true}
		}
		return d.begin(d.process(r.Header, action, body))
	}
	committed := d.begin(d.process(r.Header, action, body))
	if committed.check != nil {
		// The check does not wait for a late or lost answer.
		committed.check.since = d.options.Clock.Now()
		close(committed.check.answered)
		committed.check = nil
	}
	if fault.Fault == FaultSlow {
		d.wait(ctx, fault.Delay.Duration) // returns at once if the double is closed
		return committed
	}
	out := fault.reply(r.URL.Path)
	out.node = committed.node
	return out
}

// begin starts the check of a call.
func (d *Double) begin(out reply) reply {
	if c := out.check; c != nil {
		d.mu.Lock()
		d.background(func(ctx context.Context) { d.run(ctx, c) })
		d.mu.Unlock()
	}
	return out
}

// process binds the body (101), checks the signature (102) and executes the
// call.
func (d *Double) process(header http.Header, action string, body []byte) reply {
	fields := fieldsOf(action)
	if fields == nil {
		return statusReply(http.StatusNotFound, exePath+action)
	}
	in, wrong, err := bind(fields, body)
	if err != nil {
		return statusReply(http.StatusBadRequest, exePath+action)
	}
	if len(wrong) > 0 {
		return resultReply(rejected(codeArgument, strings.Join(wrong, "; ")))
	}
	if d.options.Signature != Skip && !d.signed(header, body) {
		return resultReply(rejected(codeSignature, "authentication request fail"))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	answer, c := d.act(action, in)
	out := resultReply(answer)
	out.check = c
	if action != actionRetrieve {
		d.keepOrder(d.orders[orderKey{in.text("platform"), in.text("bizExecOrderId")}])
	}
	switch {
	case c != nil:
		out.node = c.node.id
		d.keepNode(c.node)
	case action == actionFinish:
		d.keepNode(d.nodes[in.text("nodeId")]) // accepted without a check
	}
	return out
}

func resultReply(r result) reply {
	return reply{status: http.StatusOK, body: r.bytes(), result: r}
}

// statusReply is the error page of the server's framework.
func statusReply(status int, path string) reply {
	body, err := json.Marshal(map[string]any{"status": status, "error": http.StatusText(status), "path": path})
	if err != nil { // cannot fail: strings and a number
		panic(err)
	}
	return reply{status: status, body: body}
}

func (f FaultRule) reply(path string) reply {
	const page = "<html><head><title>Bad Gateway</title></head><body>upstream is unreachable</body></html>"
	switch f.Fault {
	case Fault901:
		return resultReply(rejected(codeInternal, "system error"))
	case Fault502, FaultGarbage:
		return reply{status: f.Fault.statusOf(), html: true, body: []byte(page)}
	case FaultReset:
		return reply{reset: true}
	default:
		return statusReply(f.Fault.statusOf(), path)
	}
}

func (out reply) write(w http.ResponseWriter) {
	if out.reset {
		panic(http.ErrAbortHandler) // net/http closes the connection
	}
	w.Header().Set("Content-Type", "application/json;charset=UTF-8")
	if out.html {
		w.Header().Set("Content-Type", "text/html")
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(out.body)))
	w.WriteHeader(out.status)
	_, _ = w.Write(out.body) // the caller has closed the connection
	_ = http.NewResponseController(w).Flush()
}

// idsOf returns the ids of a body for the log.
func idsOf(body []byte) (order, node string) {
	var ids struct {
		Order any `json:"bizExecOrderId"`
		Node  any `json:"nodeId"`
	}
	if json.Unmarshal(body, &ids) != nil {
		return "", ""
	}
	order, _ = ids.Order.(string)
	node, _ = ids.Node.(string)
	return order, node
}
