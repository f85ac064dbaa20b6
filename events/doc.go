// Package events is the contract between the parts of Breakwater that talk
// through a Broker: every CloudEvent type, its data and its id. Package
// events/delivery sends them.
//
// An event is a wake-up. It carries references, never state: who is woken
// reads the object and decides from that, so an event that is lost, doubled,
// late or out of order can neither lose nor invent a fact. The exceptions
// are changepod.verdict and order.verdict, which bring a fact from outside; who
// sends them uses delivery.Sender.Deliver and keeps the fact until the Broker has accepted it.
//
// Ids are derived from the fact, never random: the same fact has the same id,
// so it can be sent again at any time and be told from another.
//
//	type                        source                  subject     id
//	pod.finished                the workload            pod         <pod uid>/<version>/finished
//	changepod.ready             the ChangePod           ChangePod   <uid>/<version>/<stage>
//	changepod.verdict           the ChangePod           ChangePod   <uid>/<version>/<stage>/<node>/<word>[/<hash of podResults>]
//	order.ready                 the ChangeWorkload      itself      <uid>/<version>/<step>
//	order.verdict               the ChangeWorkload      itself      <uid>/<version>/<stage>/<node>/<word>
//	changeworkload.started      the ChangeWorkload      workload    <uid>/<version>/started
//	changeworkload.progressed   the ChangeWorkload      workload    <uid>/<version>/progressed/<slot>
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
//	deletion.denied             what refused            object      <uid of what refused>/<slot>/denied
//	deletionflow.opened         the flow control        itself      <uid>/<since>/opened
//	deletionflow.closed         the flow control        itself      <uid>/<since>/closed
//
// The whole type is dev.breakwater.<type>.v1; a source is the object's path at
// the API server.
package events
