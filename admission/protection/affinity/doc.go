// Package affinity has one replica of a webhook decide all requests about one
// namespace: the others hand theirs on to it.
//
// What a decision costs is a write to an object of the namespace, and replicas
// that write to one object come in each other's way: with two of them nearly
// every second write came too late. Where one decides, it decides about all who
// wait in one write.
//
// It makes nothing right that would be wrong without it. Who is the home is
// what each replica reads from the endpoints of the Service, and two may think
// differently for a moment; a home that does not answer is not waited for. Then
// more than one replica decides, as if there were no home.
package affinity
