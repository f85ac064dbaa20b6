// Package events defines the CloudEvents of Breakwater: every type, its data and
// its id. Package events/delivery sends them.
//
// Events changepod.ready and order.ready are wake-ups. Their receiver decides from the object and
// not from the event, so lost, duplicate, late or reordered wake-ups neither lose nor invent a
// fact. A copy of the object in the event only saves a read: see CopyOf. Events changepod.verdict
// and order.verdict carry a fact from outside. Their sender uses delivery.Sender.Deliver, so it
// knows whether the Broker has accepted the fact. The controller sends the verdicts of an inbox with Send, and again until they
// are recorded. The others are reports, for functions report and notify and for
// other systems: they carry the state at their time. Some of those about releases are
// announcements, which the ChangeWorkload stores until the Broker has accepted them.
//
// An id is derived from the fact and never random: the same fact always has the
// same id, so it can be sent again at any time.
//
//	type                        source                  subject     id
//	pod.finished                the workload            pod         <pod uid>/<version>/finished
//	changepod.ready             the ChangePod           ChangePod   <uid>/<version>/<stage>[/judge.<judge>]
//	changepod.verdict           the ChangePod           ChangePod   <uid>/<version>/<stage>/<node>/<verdict>[/<hash of podResults>]
//	... of another judge        the ChangePod           ChangePod   <uid>/<version>/POST/judge.<judge>/<verdict>
//	order.ready                 the ChangeWorkload      itself      <uid>/<version>/<step>
//	order.verdict               the ChangeWorkload      itself      <uid>/<version>/<stage>/<node>/<verdict>
//	changeworkload.started      the ChangeWorkload      workload    <uid>/<version>/started
//	changeworkload.progressed   the ChangeWorkload      workload    <uid>/<version>/progressed/<time>
//	changeworkload.succeeded    the ChangeWorkload      workload    <uid>/<version>/succeeded/<entry time>
//	changeworkload.suspended    the ChangeWorkload      workload    <uid>/<version>/suspended/<entry time>
//	changeworkload.failed       the ChangeWorkload      workload    <uid>/<version>/failed/<entry time>
//	changeworkload.rolledback   the ChangeWorkload      workload    <uid>/<version>/rolledback
//	changeworkload.bypassed     the ChangeWorkload      workload    <uid>/<version>/bypassed
//	release.denied              the workload            workload    <uid of the admission request>/denied
//	permission.requested        the pod                 pod         <pod uid>/<application>.<attempt>/requested
//	permission.granted          the pod                 pod         <pod uid>/<application>.<attempt>/granted
//	permission.denied           the pod                 pod         <pod uid>/<application>.<attempt>/denied
//	permission.revoked          the pod                 pod         <pod uid>/<application>.<attempt>/revoked
//	permission.leaked           the pod                 pod         <pod uid>/<application>.<attempt>/leaked
//	breaker.opened              the pod                 pod         <pod uid>/<time of the last failure>/opened
//	breaker.closed              the pod                 pod         <pod uid>/<time of the last failure>/closed
//	deletion.denied             the budget, flow        object      <its uid>/<period>/denied
//	                            control or object that
//	                            denies
//	deletionflow.opened         the flow control        itself      <uid>/<since>/opened
//	deletionflow.closed         the flow control        itself      <uid>/<since>/closed
//
// <period> is the time at which a period of DenialPeriod begins. <application> is "all" if the event covers
// all applications of the pod.
//
// The controller of part change signs its events, the callback and judges sign verdicts, and
// functions reject such an event without a valid signature (400), so it becomes a dead letter. Function
// deadletter drops it (200) and counts it. See internal/eventsigning.
//
// The full type is dev.breakwater.<type>.v1. A source is the object's path at
// the API server.
package events
