package altershield

// Stage is a stage of a node's check.
type Stage string

// The stages.
const (
	Pre  Stage = "PRE"
	Post Stage = "POST"
)

// State is a node's state, named as the server names it in its refusals.
type State string

// The states of a node. While a check runs the server moves from ..._SUBMIT to
// PRE_AOP or POST_AOP; nothing outside can tell these two apart, so the double
// has only the first.
const (
	PreSubmit   State = "PRE_AOP_SUBMIT"
	PreFinish   State = "PRE_AOP_FINISH"
	PreFail     State = "PRE_AOP_FAIL"
	PreTimeout  State = "PRE_AOP_TIMEOUT"
	PostSubmit  State = "POST_AOP_SUBMIT"
	PostFinish  State = "POST_AOP_FINISH"
	PostFail    State = "POST_AOP_FAIL"
	PostTimeout State = "POST_AOP_TIMEOUT"
)

// Ending is how a check ends.
type Ending string

// The endings.
const (
	// Judged: the rules ran to their end, whatever they said.
	Judged Ending = "judged"
	// TimedOut: the scene's check timeout passed. Called back as a pass.
	TimedOut Ending = "timeout"
	// Threw: the check threw. Called back as a pass.
	Threw Ending = "exception"
)

// finishing is what a finish notification does to a node.
type finishing struct {
	// Accepted: the answer is a success.
	Accepted bool
	// Runs: a POST check begins, and will be called back.
	Runs bool
	// Next is the state afterwards, if accepted.
	Next State
}

// finishIn says what a finish does in a state. Before the PRE verdict, and
// while a POST check runs, it is refused. After a POST check it is accepted,
// and dead: the node waits for a check that nobody started.
func finishIn(s State) finishing {
	switch s {
	case PreFinish, PreFail, PreTimeout:
		return finishing{Accepted: true, Runs: true, Next: PostSubmit}
	case PostFinish, PostFail, PostTimeout:
		return finishing{Accepted: true, Next: PostSubmit}
	default:
		return finishing{Next: s}
	}
}

// endOf is the state of a node whose check of a stage ended.
func endOf(stage Stage, how Ending) State {
	states := map[Ending]State{Judged: PreFinish, TimedOut: PreTimeout, Threw: PreFail}
	if stage == Post {
		states = map[Ending]State{Judged: PostFinish, TimedOut: PostTimeout, Threw: PostFail}
	}
	return states[how]
}

// lateEndOf is the state of a node whose check was judged after it had timed
// out: POST takes the result over, PRE keeps its state. Neither calls back.
func lateEndOf(stage Stage, s State) State {
	if stage == Post && s == PostTimeout {
		return PostFinish
	}
	return s
}
