// Package releasetrace makes one OpenTelemetry trace of each release:
//
//	release            the root; begins and ends when the ChangeWorkload is created
//	├ rollout          until Success, Suspend or Failed; one each time the release gets there
//	├ altershield …    a call to the server for the order, in a function
//	├ verdict          a verdict of the order
//	└ batch            from the creation of the ChangePod to its end
//	  ├ altershield …  a call to the server for the batch, in a function
//	  └ verdict        a verdict of the batch
//
// ChangeWorkload and ChangePod carry the context of the root in an annotation, so a restart or another
// replica continues the trace. A span that lasts is made at its end from the times of its object, by the
// process whose write ended it: no process keeps an open span, and only one write succeeds. The ids of
// these spans follow from their objects, so children that end before them know their parent.
//
// Functions continue the trace by the header traceparent of CloudEvents. Without the annotation, which a
// release gets only if it is sampled, nothing here has an effect.
package releasetrace
